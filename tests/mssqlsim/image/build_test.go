package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func simulator(t *testing.T) image.Options {
	t.Helper()
	return image.Simulator(image.SimulatorFiles{
		SQLServr: write(t, "sqlservr", "server"), SQLCmd: write(t, "sqlcmd", "client"), BusyBox: write(t, "busybox", "shell"),
	}, "mssqlsim:2022")
}

func entries(t *testing.T, r io.Reader) map[string]*tar.Header {
	t.Helper()
	headers := map[string]*tar.Header{}
	var order []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		h.PAXRecords = map[string]string{"test.body": string(body)}
		headers[h.Name] = h
		order = append(order, h.Name)
	}
	for i, name := range order { // a directory stands before what is in it
		dir, _ := strings.CutSuffix(name[:strings.LastIndex(strings.TrimSuffix(name, "/"), "/")+1], "/")
		if dir != "" && !slices.Contains(order[:i], dir+"/") {
			t.Errorf("%s stands before its directory", name)
		}
	}
	return headers
}

func body(h *tar.Header) string { return h.PAXRecords["test.body"] }

func TestBuild_TheSimulatorImage(t *testing.T) {
	t.Parallel()
	o := simulator(t)
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		if err := image.Build(w, o); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two builds differ")
	}
	archive := entries(t, &a)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(body(archive["manifest.json"])), &manifest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mssqlsim:2022"}, manifest[0].RepoTags); diff != "" {
		t.Error(diff)
	}
	config := body(archive[manifest[0].Config])
	if sum := sha256.Sum256([]byte(config)); hex.EncodeToString(sum[:])+".json" != manifest[0].Config {
		t.Error("the configuration is not named by its digest")
	}
	layer := body(archive[manifest[0].Layers[0]])
	sum := sha256.Sum256([]byte(layer))
	var c struct {
		OS, Architecture string
		Config           struct {
			User string
			Cmd  []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		t.Fatal(err)
	}
	if c.OS != "linux" || c.Architecture != "amd64" || c.Config.User != "10001" ||
		!slices.Equal(c.Config.Cmd, []string{"/opt/mssql/bin/sqlservr"}) ||
		!slices.Equal(c.RootFS.DiffIDs, []string{"sha256:" + hex.EncodeToString(sum[:])}) {
		t.Errorf("configuration = %+v", c)
	}
	files := entries(t, strings.NewReader(layer))
	for name, want := range map[string]struct {
		mode     int64
		uid, gid int
		body     string
		link     string
	}{
		"opt/mssql/bin/sqlservr":       {mode: 0o755, body: "server"},
		"opt/mssql-tools18/bin/sqlcmd": {mode: 0o755, body: "client"},
		"bin/busybox":                  {mode: 0o755, body: "shell"},
		"bin/sh":                       {mode: 0o777, link: "busybox"},
		"tmp/":                         {mode: 0o1777},
		"var/opt/mssql/":               {mode: 0o770, uid: 10001},
	} {
		h := files[name]
		if h == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if h.Mode != want.mode || h.Uid != want.uid || h.Gid != want.gid || body(h) != want.body || h.Linkname != want.link {
			t.Errorf("%s: mode %o, owner %d:%d, link %q", name, h.Mode, h.Uid, h.Gid, h.Linkname)
		}
	}
}

func TestBuild_RefusesWhatCannotBeAnImage(t *testing.T) {
	t.Parallel()
	ok := image.Options{Tags: []string{"a:1"}, Files: []image.File{{Path: "/a", Content: []byte("x"), Mode: 0o644}}}
	cases := []struct {
		name   string
		change func(*image.Options)
	}{
		{"no tag", func(o *image.Options) { o.Tags = nil }},
		{"a tag without a version", func(o *image.Options) { o.Tags = []string{"a"} }},
		{"a relative path", func(o *image.Options) { o.Files = []image.File{{Path: "a"}} }},
		{"a path twice", func(o *image.Options) { o.Files = append(slices.Clone(o.Files), image.File{Path: "/b/../a"}) }},
		{"a source that is not there", func(o *image.Options) { o.Files = []image.File{{Path: "/a", Source: "/nonexistent/file"}} }},
	}
	if err := image.Build(io.Discard, ok); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := ok
			c.change(&o)
			name := filepath.Join(t.TempDir(), "image.tar")
			if err := image.BuildFile(name, o); err == nil {
				t.Error("no error")
			}
			if _, err := os.Stat(name); !os.IsNotExist(err) {
				t.Errorf("a failed build left its file: %v", err)
			}
		})
	}
}

func TestProductAndPause_HoldOnlyTheirBinary(t *testing.T) {
	t.Parallel()
	for _, o := range []image.Options{
		image.Product(write(t, "kubectl-mssql", "x"), "kubectl-mssql:test"),
		image.Pause(write(t, "pause", "x"), "pause:test"),
	} {
		name := filepath.Join(t.TempDir(), "image.tar")
		if err := image.BuildFile(name, o); err != nil {
			t.Errorf("%v: %v", o.Tags, err)
		}
		for _, f := range o.Files {
			if strings.HasPrefix(f.Path, "/bin") {
				t.Errorf("%v has %s", o.Tags, f.Path)
			}
		}
	}
}
