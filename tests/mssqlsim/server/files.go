package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

var _ tsql.Files = (*host)(nil)

// ReadFile implements tsql.Files: CREATE CERTIFICATE … FROM FILE.
func (h *host) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// CreateFile implements tsql.Files: BACKUP CERTIFICATE … TO FILE never overwrites a file.
func (h *host) CreateFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if c := f.Close(); err == nil {
		err = c
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteFile implements tsql.Files: BACKUP to a device. The file appears whole or not at all.
func (h *host) WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if s := f.Sync(); err == nil {
		err = s
	}
	if c := f.Close(); err == nil {
		err = c
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
