package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents opens a store and returns what it holds.
func contents(t *testing.T, dir string) (*store, string, []string) {
	t.Helper()
	var snapshot string
	var frames []string
	s, err := openStore(dir,
		func(b []byte) error { snapshot = string(b); return nil },
		func(b []byte) error { frames = append(frames, string(b)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s, snapshot, frames
}

func TestStore_KeepsWhatWasAppendedAcrossRotations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, _ := contents(t, dir)
	if err := s.append([]byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := s.rotate([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	if err := s.append([]byte("c")); err != nil {
		t.Fatal(err)
	}
	_, snapshot, frames := contents(t, dir)
	if snapshot != "ab" || !cmp.Equal(frames, []string{"c"}) {
		t.Errorf("snapshot %q, frames %q", snapshot, frames)
	}
	names, _ := os.ReadDir(dir)
	if len(names) != 2 {
		t.Errorf("files left: %v", names)
	}
}

func TestStore_ATornEndIsCutOffAtEveryLength(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, _ := contents(t, dir)
	if err := s.append([]byte("first"), []byte("second")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "log-0"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		t.Run(fmt.Sprintf("%d bytes are left", n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "log-0"), whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			s, _, frames := contents(t, dir)
			var want []string
			if n >= frameHeader+len("first") {
				want = []string{"first"}
			}
			if !cmp.Equal(frames, want) {
				t.Errorf("frames %q, want %q", frames, want)
			}
			if err := s.append([]byte("third")); err != nil {
				t.Fatal(err)
			}
			if _, _, frames := contents(t, dir); !cmp.Equal(frames, append(want, "third")) {
				t.Errorf("after another append: %q", frames)
			}
		})
	}
}

func TestStore_AKillDuringRotationLeavesOneWholeGeneration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, _ := contents(t, dir)
	if err := s.append([]byte("a")); err != nil {
		t.Fatal(err)
	}
	// The new log is made and the snapshot half written: the old generation counts.
	for name, content := range map[string]string{"log-1": "", ".new-snapshot-1": "half"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, snapshot, frames := contents(t, dir); snapshot != "" || !cmp.Equal(frames, []string{"a"}) {
		t.Errorf("snapshot %q, frames %q", snapshot, frames)
	}
	// The snapshot is there and the old files are not yet removed: the new one counts.
	if err := os.WriteFile(filepath.Join(dir, "snapshot-1"), appendFrame(nil, []byte("whole")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, snapshot, frames := contents(t, dir); snapshot != "whole" || len(frames) != 0 {
		t.Errorf("snapshot %q, frames %q", snapshot, frames)
	}
}
