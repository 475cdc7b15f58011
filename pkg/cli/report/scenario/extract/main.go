// Command extract takes the captured decision out of a report and writes it as a test of
// the rules, with what the rules of this tree say now:
//
//	go run ./pkg/cli/report/scenario/extract demo-report-….tar.gz > pkg/cli/report/scenario/testdata/incident.txt
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/report/scenario"
)

// largest scenario that is read: nine replicas with a thousand databases fit.
const largest = 64 << 20

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: extract REPORT.tar.gz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(file string, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := find(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c, err := scenario.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	text, err = scenario.Format(c)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func find(f io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it holds no decision/scenario.txt: the servers could not be looked at")
		}
		if err != nil {
			return nil, err
		}
		if path.Base(path.Dir(h.Name)) == "decision" && path.Base(h.Name) == "scenario.txt" {
			return io.ReadAll(io.LimitReader(r, largest))
		}
	}
}
