//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the file in the state directory whose lock says: a run of this volume's server is alive.
const lockName = "lock"

// checkVolume makes the state directory and says in words what is wrong with the
// volume when it cannot. A full disk is no reason not to start: the server must come
// up so that somebody can make room.
func checkVolume(o Options) error {
	info, err := os.Stat(o.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitf(ExitVolume, "the data directory %s does not exist: is the volume mounted?", o.DataDir)
	case err != nil:
		return exitf(ExitVolume, "the data directory %s: %w", o.DataDir, explainAccess(o.DataDir, err))
	case !info.IsDir():
		return exitf(ExitVolume, "the data directory %s is a file", o.DataDir)
	}
	if err := os.MkdirAll(o.stateDir(), 0o770); err != nil {
		return exitf(ExitVolume, "the data directory %s: %w", o.DataDir, explainAccess(o.DataDir, err))
	}
	probe, err := os.CreateTemp(o.stateDir(), "probe-*")
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return nil
		}
		return exitf(ExitVolume, "the data directory %s: %w", o.DataDir, explainAccess(o.stateDir(), err))
	}
	_ = probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return exitf(ExitVolume, "the data directory %s: %w", o.DataDir, explainAccess(o.stateDir(), err))
	}
	// Files of another user are what a volume without fsGroup, or one that was used
	// as root (images of 2017), looks like: sqlservr would end with a bare error code.
	for _, name := range []string{"data", "log", "secrets", ".system"} {
		path := filepath.Join(o.DataDir, name)
		err := unix.Access(path, unix.R_OK|unix.W_OK|unix.X_OK)
		if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) {
			return exitf(ExitVolume, "the directory %s: %w", path, explainAccess(path, err))
		}
	}
	return nil
}

// explainAccess adds who may not do what, and what helps.
func explainAccess(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		owner := ""
		if info, statErr := os.Stat(path); statErr == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				owner = fmt.Sprintf(" it belongs to %d:%d with mode %04o;", st.Uid, st.Gid, info.Mode().Perm())
			}
		}
		return fmt.Errorf("%w:%s this container runs as %d:%d; set fsGroup: 10001 in the pod's security context, or change the owner of the volume's files to 10001",
			err, owner, os.Getuid(), os.Getgid())
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the volume is mounted read-only; look at the node's log for I/O errors", err)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w: the storage answers with an I/O error", err)
	}
	return err
}

// lockVolume takes the exclusive lock on the data volume. The returned file must stay
// open, and sqlservr inherits it: as long as one of the two lives, no other run of this
// volume starts a server, on whatever node it is. The lock of a run that has just been
// killed goes when its last process is gone, so it is tried for a while.
func lockVolume(ctx context.Context, o Options, patience, every time.Duration) (*os.File, error) {
	path := filepath.Join(o.stateDir(), lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o660)
	if err != nil {
		return nil, exitf(ExitVolume, "open the lock %s: %w", path, explainAccess(path, err))
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, exitf(ExitVolume, "lock %s: %w", path, err)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			_ = f.Close()
			return nil, exitf(ExitLocked,
				"the data volume is in use: another run of this server holds the lock %s; it must end before this one may start", path)
		case <-ctx.Done():
			_ = f.Close()
			return nil, exitf(ExitLocked, "lock %s: %w", path, ctx.Err())
		}
	}
}

// installTLS copies the TDS certificate and key onto the volume, where sqlservr may
// read them (FG 7.5: mode 400, own user). Without a certificate sqlservr makes one itself.
func installTLS(o Options) (tlsPaths, error) {
	cert, err := os.ReadFile(filepath.Join(o.TLSDir, "tls.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return tlsPaths{}, nil
	}
	if err != nil {
		return tlsPaths{}, exitf(ExitConfig, "read the TDS certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(o.TLSDir, "tls.key"))
	if err != nil {
		return tlsPaths{}, exitf(ExitConfig, "read the TDS key: %w", err)
	}
	dir := filepath.Join(o.DataDir, "tls")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tlsPaths{}, exitf(ExitVolume, "make %s: %w", dir, explainAccess(o.DataDir, err))
	}
	paths := tlsPaths{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for path, content := range map[string][]byte{paths.Cert: cert, paths.Key: key} {
		if err := replaceFile(path, content, 0o400); err != nil {
			return tlsPaths{}, exitf(ExitVolume, "install the TDS certificate: %w", err)
		}
	}
	return paths, nil
}

// installConf writes mssql.conf.
func installConf(o Options, c Config, paths tlsPaths) error {
	c.MemoryLimitMB = ownMemoryLimit(c.MemoryLimitMB, os.ReadFile)
	path := filepath.Join(o.DataDir, "mssql.conf")
	if err := replaceFile(path, []byte(renderConf(c, paths)), 0o640); err != nil {
		return exitf(ExitVolume, "write %s: %w", path, explainAccess(path, err))
	}
	return nil
}

// replaceFile makes path hold content, durably and at once: a crash leaves the old or
// the new content, never a part. A file that already holds it is left alone, which is
// what lets a server start on a full disk.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(content) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() == mode {
			return nil
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
