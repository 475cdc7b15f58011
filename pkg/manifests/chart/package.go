package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Package returns the chart as the archive that helm install takes, the same bytes
// from the same source: Helm's own packaging writes the time into it.
func Package() ([]byte, error) {
	files, err := Files()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	zw, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	tw := tar.NewWriter(zw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{
			Name: Name + "/" + name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg,
			ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR,
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack the chart: %s: %w", name, err)
		}
		if _, err := tw.Write(files[name]); err != nil {
			return nil, fmt.Errorf("pack the chart: %s: %w", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("pack the chart: %w", err)
	}
	return b.Bytes(), nil
}
