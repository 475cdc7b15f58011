package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// packaged wants the program, its other name, licence, manual and completions in a deb.
func packaged(name string) error {
	files, err := debian(name)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	for _, want := range []string{
		"usr/bin/kubectl-mssql", "usr/bin/kubectl_complete-mssql", "usr/share/doc/kubectl-mssql/copyright", "usr/share/man/man1/kubectl-mssql.1",
		"usr/share/bash-completion/completions/kubectl-mssql", "usr/share/zsh/vendor-completions/_kubectl-mssql",
		"usr/share/fish/vendor_completions.d/kubectl-mssql.fish",
	} {
		if !slices.Contains(files, want) {
			return fmt.Errorf("%s lacks /%s", filepath.Base(name), want)
		}
	}
	return nil
}

// debian lists the files of a package: an ar archive with a header of 60 bytes before each
// member, whose data.tar.gz holds the files.
func debian(name string) ([]string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	const magic, header = "!<arch>\n", 60
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return nil, errors.New("it is no ar archive")
	}
	for len(rest) >= header {
		member := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || header+size > len(rest) {
			return nil, fmt.Errorf("member %q has no size that fits", member)
		}
		if member == "data.tar.gz" {
			z, err := gzip.NewReader(bytes.NewReader(rest[header : header+size]))
			if err != nil {
				return nil, err
			}
			return tarred(z)
		}
		rest = rest[min(header+size+size%2, len(rest)):]
	}
	return nil, errors.New("it has no data.tar.gz")
}

func tarred(from io.Reader) ([]string, error) {
	var files []string
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		files = append(files, strings.TrimPrefix(path.Clean(h.Name), "/"))
	}
}

// image wants one for each architecture of Linux.
func image(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	documents := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		if h.Size < 1<<20 { // layers are larger
			if documents[path.Clean(h.Name)], err = io.ReadAll(r); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(name), err)
			}
		}
	}
	type index struct {
		Manifests []struct {
			MediaType, Digest string
			Platform          struct{ OS, Architecture string }
		}
	}
	platforms := map[string]bool{}
	var look func(file string) error
	look = func(file string) error {
		var i index
		if err := json.Unmarshal(documents[file], &i); err != nil {
			return fmt.Errorf("%s: %s: %w", filepath.Base(name), file, err)
		}
		for _, m := range i.Manifests {
			if strings.HasSuffix(m.MediaType, "index.v1+json") {
				if err := look("blobs/" + strings.Replace(m.Digest, ":", "/", 1)); err != nil {
					return err
				}
				continue
			}
			platforms[m.Platform.OS+"/"+m.Platform.Architecture] = true
		}
		return nil
	}
	if err := look("index.json"); err != nil {
		return err
	}
	for _, want := range []string{"linux/amd64", "linux/arm64"} {
		if !platforms[want] {
			return fmt.Errorf("%s has no image for %s", filepath.Base(name), want)
		}
	}
	return nil
}
