package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile takes an exclusive lock that ends with the process at the latest.
// waiting is called when somebody else holds it. Who holds the lock may remove
// the file: who waited then locks the new one.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the directory went between the two calls
		}
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		unlock, err := flock(ctx, f, waiting)
		if err != nil {
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			unlock()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
			return unlock, nil
		}
		unlock()
	}
}

// lockDir locks a directory, which it makes; nothing is left in it.
func lockDir(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return flock(ctx, f, waiting)
}

func flock(ctx context.Context, f *os.File, waiting func()) (unlock func(), err error) {
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), ctx.Err()), f.Close())
		case <-time.After(250 * time.Millisecond):
		}
	}
}
