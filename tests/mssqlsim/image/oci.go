package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// descriptor points to a blob, as the OCI image specification writes it.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// BuildOCI writes one image for several architectures as an OCI archive, which
// `skopeo copy --all oci-archive:FILE docker://…` pushes. All options must have the
// first one's tag.
func BuildOCI(w io.Writer, images ...Options) error {
	if len(images) == 0 || len(images[0].Tags) == 0 {
		return errors.New("build OCI image: no image, or no tag")
	}
	b := &layout{tw: tar.NewWriter(w), written: map[string]bool{}}
	var manifests []descriptor
	for _, o := range images {
		d, err := b.image(o)
		if err != nil {
			return fmt.Errorf("build OCI image: %w", err)
		}
		manifests = append(manifests, d)
	}
	index, err := b.document(mediaIndex, map[string]any{"schemaVersion": 2, "mediaType": mediaIndex, "manifests": manifests})
	if err != nil {
		return fmt.Errorf("build OCI image: %w", err)
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": images[0].Tags[0]}
	for _, f := range []struct {
		name string
		doc  any
	}{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", map[string]any{"schemaVersion": 2, "manifests": []descriptor{index}}},
	} {
		text, err := json.Marshal(f.doc)
		if err == nil {
			err = b.file(f.name, text)
		}
		if err != nil {
			return fmt.Errorf("build OCI image: %w", err)
		}
	}
	if err := b.tw.Close(); err != nil {
		return fmt.Errorf("build OCI image: %w", err)
	}
	return nil
}

type layout struct {
	tw      *tar.Writer
	written map[string]bool
}

func (b *layout) image(o Options) (descriptor, error) {
	files, err := withParents(o.Files)
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	plain := sha256.New()
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if err := writeLayer(io.MultiWriter(zip, plain), files); err != nil {
		return descriptor{}, err
	}
	if err := zip.Close(); err != nil {
		return descriptor{}, err
	}
	layer, err := b.blob(mediaLayer, packed.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	config, err := b.document(mediaConfig, configOf(o, hex.EncodeToString(plain.Sum(nil))))
	if err != nil {
		return descriptor{}, err
	}
	d, err := b.document(mediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": mediaManifest, "config": config, "layers": []descriptor{layer},
	})
	arch := o.Architecture
	if arch == "" {
		arch = "amd64"
	}
	d.Platform = &platform{Architecture: arch, OS: "linux"}
	return d, err
}

func (b *layout) document(mediaType string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return b.blob(mediaType, text)
}

func (b *layout) blob(mediaType string, content []byte) (descriptor, error) {
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: int64(len(content))}
	if b.written[name] {
		return d, nil
	}
	b.written[name] = true
	return d, b.file("blobs/sha256/"+name, content)
}

func (b *layout) file(name string, content []byte) error {
	h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch, Format: tar.FormatUSTAR}
	if err := b.tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := b.tw.Write(content)
	return err
}
