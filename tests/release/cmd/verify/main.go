// Command verify looks into what a release has built: `verify dist`. Archives and deb
// packages hold the program, a licence, manual and completions, the image is there for both
// architectures, checksums hold, the krew manifest keeps krew's rules and
// leads to these archives. It prints the sizes.
package main

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/release/krew"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: verify DIST")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(dist string, out io.Writer) error {
	sums, err := checksums(dist)
	if err != nil {
		return err
	}
	var problems []error
	archives, debs, rpms := 0, 0, 0
	for _, name := range slices.Sorted(keys(sums)) {
		info, err := os.Stat(filepath.Join(dist, name))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(out, "%8.1f MB  %s\n", float64(info.Size())/1e6, name)
		if got, err := digest(filepath.Join(dist, name)); err != nil || got != sums[name] {
			problems = append(problems, fmt.Errorf("%s: the checksum does not hold (%w)", name, err))
		}
		switch {
		case strings.HasSuffix(name, ".deb"):
			debs++
			problems = append(problems, packaged(filepath.Join(dist, name)))
		case strings.HasSuffix(name, ".rpm"):
			rpms++
		}
		if strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip") {
			archives++
			problems = append(problems, contents(filepath.Join(dist, name)))
		}
	}
	if archives != 6 {
		problems = append(problems, fmt.Errorf("%d archives, 6 are wanted", archives))
	}
	if debs != 2 || rpms != 2 {
		problems = append(problems, fmt.Errorf("%d deb and %d rpm packages, 2 of each are wanted", debs, rpms))
	}
	problems = append(problems, image(filepath.Join(dist, "kubectl-mssql_image.oci.tar")))
	boms, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(boms) != 6 {
		problems = append(problems, fmt.Errorf("%d bills of materials, 6 are wanted", len(boms)))
	}
	problems = append(problems, plugin(dist, sums))
	return errors.Join(problems...)
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func checksums(dist string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sums := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 2 {
			sums[f[1]] = f[0]
		}
	}
	return sums, nil
}

func digest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// contents wants the program, the licence, a man page and the completions.
func contents(name string) error {
	files, err := list(name)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	program := "kubectl-mssql"
	if strings.HasSuffix(name, ".zip") {
		program += ".exe"
	}
	for _, want := range []string{program, "LICENSE", "man/kubectl-mssql.1", "completions/_kubectl-mssql", "completions/kubectl_complete-mssql"} {
		if !slices.Contains(files, want) {
			return fmt.Errorf("%s lacks %s", filepath.Base(name), want)
		}
	}
	return nil
}

func list(name string) ([]string, error) {
	if strings.HasSuffix(name, ".zip") {
		var files []string
		z, err := zip.OpenReader(name)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		for _, f := range z.File {
			files = append(files, path.Clean(f.Name))
		}
		return files, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return tarred(z)
}

// plugin checks the manifest for krew, and that its archives are the ones built.
func plugin(dist string, sums map[string]string) error {
	found, err := filepath.Glob(filepath.Join(dist, "krew", "*.yaml"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d krew manifests, one is wanted", len(found))
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	m, err := krew.Check(found[0], text)
	if err != nil {
		return fmt.Errorf("krew manifest: %w", err)
	}
	for _, p := range m.Spec.Platforms {
		if name := path.Base(p.URI); sums[name] != p.SHA256 {
			return fmt.Errorf("krew manifest: %s is not what was built", name)
		}
	}
	return nil
}
