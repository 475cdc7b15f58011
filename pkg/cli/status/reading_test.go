package status

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// The text is written from the document alone: from one that went through JSON the
// same screen comes out, so that nothing which is shown is missing there.
func TestJSON_HoldsAllThatTheTextShows(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		d := Build(in)
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var read Document
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatal(err)
		}
		primary := slices.ContainsFunc(read.Replicas, func(r ReplicaRow) bool { return r.Role == "PRIMARY" })
		for _, r := range d.Replicas {
			if r.idle && primary {
				t.Errorf("%s: %s has nothing to receive although JSON has a primary", name, r.Name)
			}
		}
		var screen [2]strings.Builder
		for i, x := range []Document{d, read} {
			s, _, _, _ := iostreams.Test()
			if err := WriteText(&screen[i], s, x, TextOptions{Now: now, Self: "kubectl mssql", Width: 100, Verbose: 2}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(screen[0].String(), screen[1].String()); diff != "" {
			t.Errorf("%s: the text shows what JSON does not hold:\n%s", name, diff)
		}
	}
}

// What is well fits a terminal of 80 by 24; no trouble takes more than 32 lines.
func TestScreens_FitOneScreenshot(t *testing.T) {
	t.Parallel()
	for name := range screens() {
		most := 32
		if name == "healthy" {
			most = 24
		}
		b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("%s-80.golden", name)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d are wanted", name, n, most)
		}
	}
}
