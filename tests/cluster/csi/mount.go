package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// kernelMounter mounts for real, in the process's own mount namespace.
type kernelMounter struct{}

func (kernelMounter) bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	// A bind mount takes its flags only from a second call.
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", target, err), unix.Unmount(target, 0))
	}
	return nil
}

func (kernelMounter) unmount(target string) error {
	err := unix.Unmount(target, 0)
	// EINVAL: not a mount point.
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", target, err)
}

func (kernelMounter) mounted(source, target string) (bool, error) {
	s, err := os.Stat(source)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", source, err)
	}
	t, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", target, err)
	}
	return os.SameFile(s, t), nil
}
