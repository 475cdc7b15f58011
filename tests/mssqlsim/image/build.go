// Package image writes container images as docker-archive tars, without an engine, a
// daemon or a registry: one layer, the same bytes from the same input. It knows the
// images that the tests need: the simulated SQL Server, the product's own (nothing but
// its binary) and a pause container.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"time"
)

// File is one entry of the layer. Exactly one of Source, Content, Link and Dir counts.
type File struct {
	Path     string // absolute
	Source   string // a file on this machine
	Content  []byte
	Link     string // target of a symbolic link
	Dir      bool
	Mode     fs.FileMode // permission bits, with fs.ModeSticky if wanted
	UID, GID int
}

// Options describes an image.
type Options struct {
	Tags  []string // such as "mssqlsim:2022"; at least one
	Files []File   // parents that are not listed are made with mode 0755, owned by root

	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string // "10001" or "10001:0"
	WorkingDir string
	Ports      []string // such as "1433/tcp"
	Labels     map[string]string
	StopSignal string

	// Architecture as Go names it; empty means amd64.
	Architecture string
}

// epoch dates every entry, so that the image depends on its content only.
var epoch = time.Unix(0, 0).UTC()

// Build writes the archive. It reads the sources twice: a layer is named by its digest,
// which stands before it in the archive.
func Build(w io.Writer, o Options) error {
	if len(o.Tags) == 0 {
		return errors.New("build image: no tag")
	}
	for i, t := range o.Tags {
		if !strings.Contains(t, ":") {
			return fmt.Errorf("build image: tag %d is %q, want name:tag", i, t)
		}
	}
	files, err := withParents(o.Files)
	if err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	digest, size := sha256.New(), &counter{}
	if err := writeLayer(io.MultiWriter(digest, size), files); err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	layer := hex.EncodeToString(digest.Sum(nil))
	config, err := json.Marshal(configOf(o, layer))
	if err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	sum := sha256.Sum256(config)
	configName, layerName := hex.EncodeToString(sum[:])+".json", layer+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": o.Tags, "Layers": []string{layerName},
	}})
	if err != nil {
		return fmt.Errorf("build image: %w", err)
	}

	tw := tar.NewWriter(w)
	for _, part := range []struct {
		name    string
		content []byte
	}{{"manifest.json", manifest}, {configName, config}} {
		if err := tw.WriteHeader(&tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(part.content)), ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
			return fmt.Errorf("build image: %w", err)
		}
		if _, err := tw.Write(part.content); err != nil {
			return fmt.Errorf("build image: %w", err)
		}
	}
	if err := tw.WriteHeader(&tar.Header{Name: layer + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	if err := tw.WriteHeader(&tar.Header{Name: layerName, Mode: 0o644, Size: size.n, ModTime: epoch, Format: tar.FormatPAX}); err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	again := sha256.New()
	if err := writeLayer(io.MultiWriter(tw, again), files); err != nil {
		return fmt.Errorf("build image: a file changed meanwhile: %w", err)
	}
	if hex.EncodeToString(again.Sum(nil)) != layer {
		return errors.New("build image: a file changed meanwhile; build again")
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	return nil
}

// BuildFile writes the archive to a file. A failed build leaves no file.
func BuildFile(name string, o Options) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("build image: %w", err)
	}
	err = Build(f, o)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("build image: %w", closeErr)
	}
	if err != nil {
		_ = os.Remove(name)
	}
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// withParents sorts the files, adds missing directories and checks the paths.
func withParents(files []File) ([]File, error) {
	all := map[string]File{}
	for _, f := range files {
		clean := path.Clean(f.Path)
		if !path.IsAbs(f.Path) || clean == "/" {
			return nil, fmt.Errorf("path %q is not absolute", f.Path)
		}
		if _, twice := all[clean]; twice {
			return nil, fmt.Errorf("path %s is listed twice", clean)
		}
		f.Path = clean
		all[clean] = f
	}
	for _, f := range files {
		for dir := path.Dir(path.Clean(f.Path)); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = File{Path: dir, Dir: true, Mode: 0o755}
			}
		}
	}
	out := make([]File, 0, len(all))
	for _, f := range all {
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

func writeLayer(w io.Writer, files []File) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		if err := writeEntry(tw, f); err != nil {
			return fmt.Errorf("add %s: %w", f.Path, err)
		}
	}
	return tw.Close()
}

func writeEntry(tw *tar.Writer, f File) error {
	mode := int64(f.Mode.Perm())
	if f.Mode&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	h := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Mode: mode, Uid: f.UID, Gid: f.GID,
		ModTime: epoch, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}
	var content io.Reader = bytes.NewReader(f.Content)
	switch {
	case f.Dir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Source != "":
		src, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer func() { _ = src.Close() }()
		info, err := src.Stat()
		if err != nil {
			return err
		}
		h.Size, content = info.Size(), src
	default:
		h.Size = int64(len(f.Content))
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(tw, content)
	return err
}

// configOf is the image configuration in the Docker form.
func configOf(o Options, layer string) map[string]any {
	arch := o.Architecture
	if arch == "" {
		arch = "amd64"
	}
	run := map[string]any{}
	set := func(key string, value []string) {
		if len(value) > 0 {
			run[key] = value
		}
	}
	set("Env", o.Env)
	set("Entrypoint", o.Entrypoint)
	set("Cmd", o.Cmd)
	for key, value := range map[string]string{"User": o.User, "WorkingDir": o.WorkingDir, "StopSignal": o.StopSignal} {
		if value != "" {
			run[key] = value
		}
	}
	if len(o.Ports) > 0 {
		ports := map[string]any{}
		for _, p := range o.Ports {
			ports[p] = struct{}{}
		}
		run["ExposedPorts"] = ports
	}
	if len(o.Labels) > 0 {
		run["Labels"] = o.Labels
	}
	return map[string]any{
		"architecture": arch,
		"os":           "linux",
		"created":      epoch.Format(time.RFC3339),
		"config":       run,
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
		"history":      []map[string]any{{"created": epoch.Format(time.RFC3339), "comment": "one layer"}},
	}
}
