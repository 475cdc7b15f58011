package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// ImageFile is one file of an image's only layer.
type ImageFile struct {
	// Path inside the image, with or without the leading slash.
	Path string
	// Source is the file to copy; Data is used when it is empty.
	Source string
	Data   []byte
	// Mode is 0755 when zero.
	Mode int64
	// Link makes a symbolic link with this target instead.
	Link string
}

// Image describes a container image of one layer.
type Image struct {
	// Name with its tag, "kmssql.local/pause:1".
	Name       string
	Files      []ImageFile
	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string
	WorkingDir string
}

// WriteArchive writes the image as a docker-archive, the format of "docker
// save". The same input gives the same bytes.
func (i Image) WriteArchive(w io.Writer) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	diff := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Env": i.Env, "User": i.User, "WorkingDir": i.WorkingDir,
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(diff[:])}},
		"history": []map[string]string{{"created": "1970-01-01T00:00:00Z"}},
	})
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	id := sha256.Sum256(config)
	configName, layerName := hex.EncodeToString(id[:])+".json", hex.EncodeToString(diff[:])+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{i.Name}, "Layers": []string{layerName},
	}})
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	t := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{{configName, config}, {layerName, layer}, {"manifest.json", manifest}} {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data)), Format: tar.FormatUSTAR}); err != nil {
			return fmt.Errorf("write the image %s: %w", i.Name, err)
		}
		if _, err := t.Write(f.data); err != nil {
			return fmt.Errorf("write the image %s: %w", i.Name, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("write the image %s: %w", i.Name, err)
	}
	return nil
}

// WriteFile writes the archive to a file.
func (i Image) WriteFile(file string) error {
	var b bytes.Buffer
	if err := i.WriteArchive(&b); err != nil {
		return err
	}
	return writeFileAtomic(file, b.Bytes(), 0o644)
}

func (i Image) layer() ([]byte, error) {
	files := slices.Clone(i.Files)
	slices.SortFunc(files, func(a, b ImageFile) int { return strings.Compare(clean(a.Path), clean(b.Path)) })
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	var parents func(dir string) error
	parents = func(dir string) error {
		if made[dir] {
			return nil
		}
		if err := parents(path.Dir(dir)); err != nil {
			return err
		}
		made[dir] = true
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		return t.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: mode, Format: tar.FormatPAX})
	}
	for _, f := range files {
		name := clean(f.Path)
		if err := parents(path.Dir(name)); err != nil {
			return nil, err
		}
		if strings.HasSuffix(f.Path, "/") {
			if err := parents(name); err != nil {
				return nil, err
			}
			continue
		}
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: f.Mode, Format: tar.FormatPAX}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		data := f.Data
		switch {
		case f.Link != "":
			h.Typeflag, h.Linkname, data = tar.TypeSymlink, f.Link, nil
		case f.Source != "":
			var err error
			if data, err = os.ReadFile(f.Source); err != nil {
				return nil, fmt.Errorf("add %s: %w", f.Path, err)
			}
		}
		h.Size = int64(len(data))
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("add %s: %w", f.Path, err)
		}
		if _, err := t.Write(data); err != nil {
			return nil, fmt.Errorf("add %s: %w", f.Path, err)
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
