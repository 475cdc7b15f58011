package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// minFreeDisk is what the images, volumes and logs of a cluster take, with room to spare.
// A kubelet with less than nodeEviction left takes no pods, and the scheduler then speaks
// of a taint, which tells nobody that the machine's disk is full.
const (
	minFreeDisk  = 2 << 30
	nodeEviction = "200Mi"
)

// freeDisk returns the bytes that root may use on the disk it is, or will be, on.
func freeDisk(root string) (uint64, error) {
	for dir := root; ; dir = filepath.Dir(dir) {
		var st syscall.Statfs_t
		err := syscall.Statfs(dir, &st)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("see how much of the disk of %s is free: %w", dir, err)
		}
		return st.Bavail * uint64(st.Bsize), nil
	}
}

func enoughDisk(root string, free uint64) error {
	if free >= minFreeDisk {
		return nil
	}
	return fmt.Errorf("%d MiB are free on the disk of %s, and a cluster wants %d: its nodes would take no pods; "+
		"make room (old build caches are `go clean -cache -testcache`) or choose another disk with %s",
		free>>20, root, minFreeDisk>>20, EnvRoot)
}
