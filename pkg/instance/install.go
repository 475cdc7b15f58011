package instance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies the running binary to dest, through a temporary file in the
// same directory, so that dest is never half a program. It is what the init
// container does: the SQL Server image itself stays unchanged.
func Install(dest string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install: find the running program: %w", err)
	}
	return copyProgram(self, dest)
}

func copyProgram(source, dest string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer func() { _ = in.Close() }()
	if info, statErr := os.Stat(dest); statErr == nil && info.IsDir() {
		dest = filepath.Join(dest, filepath.Base(source))
	}
	out, err := os.CreateTemp(filepath.Dir(dest), ".install-*")
	if err != nil {
		return fmt.Errorf("install %s: %w", dest, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return fmt.Errorf("install %s: %w", dest, err)
	}
	if err := errors.Join(out.Chmod(0o755), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("install %s: %w", dest, err)
	}
	if err := os.Rename(out.Name(), dest); err != nil {
		return fmt.Errorf("install %s: %w", dest, err)
	}
	return nil
}
