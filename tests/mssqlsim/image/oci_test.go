package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

func TestBuildOCI_EveryDescriptorHoldsAndEachArchitectureHasItsOwnFile(t *testing.T) {
	t.Parallel()
	build := func() []byte {
		var images []Options
		for _, arch := range []string{"amd64", "arm64"} {
			images = append(images, Options{Tags: []string{"x:1"}, Architecture: arch, Entrypoint: []string{"/bin/p"},
				Files: []File{{Path: "/bin/p", Content: []byte("for " + arch), Mode: 0o755}}})
		}
		var b bytes.Buffer
		if err := BuildOCI(&b, images...); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	archive := build()
	if !bytes.Equal(archive, build()) {
		t.Error("two builds differ")
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if len(files["oci-layout"]) == 0 {
		t.Error("no oci-layout")
	}
	blob := func(d descriptor, into any) []byte {
		content := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != d.Digest[len("sha256:"):] || int64(len(content)) != d.Size {
			t.Fatalf("the blob of %+v does not hold", d)
		}
		if into != nil {
			if err := json.Unmarshal(content, into); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	var top, index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %v, %+v", err, top)
	}
	blob(top.Manifests[0], &index)
	if len(index.Manifests) != 2 {
		t.Fatalf("%d manifests", len(index.Manifests))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := index.Manifests[i]
		if d.Platform == nil || d.Platform.Architecture != arch || d.Platform.OS != "linux" {
			t.Errorf("platform %+v", d.Platform)
		}
		var m struct {
			Config descriptor
			Layers []descriptor
		}
		blob(d, &m)
		var c struct {
			Architecture string
			Rootfs       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		blob(m.Config, &c)
		zip, err := gzip.NewReader(bytes.NewReader(blob(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(layer)
		if c.Architecture != arch || c.Rootfs.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("configuration %+v does not fit its layer", c)
		}
		if !bytes.Contains(layer, []byte("for "+arch)) {
			t.Errorf("the layer of %s holds another file", arch)
		}
	}
}
