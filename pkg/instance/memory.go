//go:build linux

package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// memoryName is the file in the state directory that outlives the container.
const memoryName = "memory.json"

// persisted is what a manager must not forget: it is on the disk before anybody is told.
type persisted struct {
	// Authority holds the highest epoch and rule number ever seen, and the seal (R4, R22).
	Authority lease.Persisted `json:"authority"`
	// Fenced: the server stays stopped, also while the API server does not answer.
	Fenced *v1alpha1.FencedReplica `json:"fenced,omitempty"`
	// Runs counts the runs of this volume's manager.
	Runs int64 `json:"runs"`
}

// memory keeps persisted on the disk.
type memory struct {
	mu   sync.Mutex
	path string
	// write makes the text durable.
	write func(path string, b []byte) error
	now   persisted
}

func replaceMemory(path string, b []byte) error { return replaceFile(path, b, 0o600) }

// openMemory reads what earlier runs left. A file that cannot be read is an error: to
// forget an epoch or a seal would be worse than not to start.
func openMemory(dir, agUID string) (*memory, error) {
	m := &memory{path: filepath.Join(dir, memoryName), write: replaceMemory}
	b, err := os.ReadFile(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", m.path, err)
	default:
		if err := json.Unmarshal(b, &m.now); err != nil {
			return nil, fmt.Errorf("read %s: %w; it holds what earlier runs promised, so it is not thrown away by itself", m.path, err)
		}
	}
	m.belongTo(agUID)
	return m, nil
}

// belongTo forgets what was remembered for another custom resource.
func (m *memory) belongTo(agUID string) {
	if m.now.Authority.AGUID != agUID {
		// Another custom resource of the same name: its epochs are its own, and the order
		// to stay fenced was of the old one.
		m.now = persisted{Authority: lease.Persisted{AGUID: agUID}, Runs: m.now.Runs}
	}
}

// get is a copy.
func (m *memory) get() persisted {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// update changes the memory; it returns only when the change is on the disk, and
// changes nothing when it cannot be.
func (m *memory) update(change func(*persisted)) (persisted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.now
	change(&next)
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return m.now, fmt.Errorf("remember: %w", err)
	}
	if err := m.write(m.path, append(b, '\n')); err != nil {
		return m.now, fmt.Errorf("remember: %w", err)
	}
	m.now = next
	return next, nil
}
