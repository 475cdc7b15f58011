package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Archive collects files. Every text goes through the redactor on its way in: there is
// no other way in. Its methods may be called from any goroutine.
type Archive struct {
	redact *Redactor
	root   string
	at     time.Time

	mu    sync.Mutex
	files map[string]file
	errs  []string
}

type file struct {
	text  []byte
	about string
}

func newArchive(root string, r *Redactor, at time.Time) *Archive {
	return &Archive{redact: r, root: root, at: at, files: map[string]file{}}
}

// Add puts a file in; about is its line in the index, empty for a file of a described folder.
func (a *Archive) Add(path, about string, text []byte) {
	clean := a.redact.Text(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files[safePath(path)] = file{clean, string(a.redact.Text([]byte(about)))}
}

// Fail notes what could not be gathered, and why. It is never a reason to stop.
func (a *Archive) Fail(what string, err error) {
	line := string(a.redact.Text([]byte(fmt.Sprintf("%s: %v", what, err))))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, strings.Join(strings.Fields(line), " "))
}

// Errors noted so far, sorted.
func (a *Archive) Errors() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Clone(a.errs)
	slices.Sort(out)
	return out
}

// Paths of the files, sorted.
func (a *Archive) Paths() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]string, 0, len(a.files))
	for p := range a.files {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Index is one line for each described file.
func (a *Archive) Index() string {
	var b strings.Builder
	paths := a.Paths()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		if f := a.files[p]; f.about != "" {
			fmt.Fprintf(&b, "  %-34s %s\n", p, f.about)
		}
	}
	return b.String()
}

// safePath keeps names from the cluster inside the archive.
func safePath(path string) string {
	path = strings.ReplaceAll(path, "\\", "_")
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(p string) bool { return p == "" || p == "." || p == ".." })
	return strings.Join(parts, "/")
}

// WriteTar writes the archive as .tar.gz that only the user may read. It appears under
// its name when it is whole.
func (a *Archive) WriteTar(path string) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write the report: %w", err), os.Remove(tmp.Name()))
		}
	}()
	z := gzip.NewWriter(tmp)
	w := tar.NewWriter(z)
	paths := a.Paths()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		text := a.files[p].text
		h := &tar.Header{Name: a.root + "/" + p, Mode: 0o600, Size: int64(len(text)), ModTime: a.at, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return errors.Join(err, tmp.Close())
		}
		if _, err := w.Write(text); err != nil {
			return errors.Join(err, tmp.Close())
		}
	}
	if err := errors.Join(w.Close(), z.Close(), tmp.Chmod(0o600), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// WriteDir writes the files below a folder, which must not hold a report already.
func (a *Archive) WriteDir(dir string) error {
	root := filepath.Join(dir, a.root)
	if _, err := os.Lstat(root); err == nil {
		return fmt.Errorf("write the report: %s is there already", root)
	}
	paths := a.Paths()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		path := filepath.Join(root, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := os.WriteFile(path, a.files[p].text, 0o600); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
