package cluster

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestEnoughDisk(t *testing.T) {
	t.Parallel()
	if err := enoughDisk("/root/of/it", minFreeDisk); err != nil {
		t.Errorf("as much as is wanted is refused: %v", err)
	}
	err := enoughDisk("/root/of/it", minFreeDisk-1)
	if err == nil {
		t.Fatal("a full disk is taken")
	}
	for _, want := range []string{"2047 MiB are free", "/root/of/it", "wants 2048", EnvRoot} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestFreeDisk_OfADirectoryThatIsYetToBeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, err := freeDisk(dir)
	if err != nil || here == 0 {
		t.Fatalf("freeDisk(%s) = %d, %v", dir, here, err)
	}
	if _, err := freeDisk(filepath.Join(dir, "not", "yet")); err != nil {
		t.Errorf("a directory that is not there yet: %v", err)
	}
}
