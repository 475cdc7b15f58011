package server

import (
	"fmt"
	"os"

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
