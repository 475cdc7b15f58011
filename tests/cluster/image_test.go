package cluster

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testImage() Image {
	return Image{
		Name: "kmssql.local/x:1", Entrypoint: []string{"/bin/x"}, User: "10001",
		Files: []ImageFile{
			{Path: "/etc/x.conf", Data: []byte("a=1\n"), Mode: 0o600}, {Path: "/tmp/"},
			{Path: "/bin/x", Data: []byte("ELF")}, {Path: "bin/y", Link: "x"},
		},
	}
}

func TestImage_IsTheSameBytesEachTime(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	if err := errors.Join(testImage().WriteArchive(&a), testImage().WriteArchive(&b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two archives of one image differ")
	}
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := testImage().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	tags, sum, err := inspectArchive(file)
	if err != nil || len(tags) != 1 || tags[0] != "kmssql.local/x:1" || len(sum) != 64 {
		t.Errorf("inspect: got %v, %q, %v", tags, sum, err)
	}
}

func TestImage_LayerHasParentsBeforeFiles(t *testing.T) {
	t.Parallel()
	layer, err := testImage().layer()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	r := tar.NewReader(bytes.NewReader(layer))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(h.Name+" "+h.Linkname)+" "+h.FileInfo().Mode().String())
	}
	want := []string{
		"bin/ drwxr-xr-x", "bin/x -rwxr-xr-x", "bin/y x Lrwxr-xr-x", "etc/ drwxr-xr-x", "etc/x.conf -rw-------", "tmp/ dtrwxrwxrwx",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInspectArchive_RefusesWhatIsNoImage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.tar")
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	if err := writeFileAtomic(file, empty.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if tags, _, err := inspectArchive(file); err == nil {
		t.Errorf("got %v, want an error", tags)
	}
}
