package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stateVersion changes when a state file of before cannot be read as one of now.
const stateVersion = 1

// state is what a local cluster remembers between two runs of the program. It is
// written before and after every step, so that a run that crashed half-way
// leaves enough for Down, and for the next Up.
type state struct {
	Version int `json:"version"`
	// BootID is the machine's; after a reboot no recorded process is ours.
	BootID string `json:"bootID"`
	Octet  int    `json:"octet"`
	Ports  ports  `json:"ports"`
	// Nodes by index, 1 and up.
	Nodes     []nodeState `json:"nodes,omitempty"`
	Processes []process   `json:"processes,omitempty"`
}

// ports are the ones that the control plane takes on the machine.
type ports struct {
	API               int `json:"api"`
	EtcdClient        int `json:"etcdClient"`
	EtcdPeer          int `json:"etcdPeer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	DNS               int `json:"dns"`
	DNSReady          int `json:"dnsReady"`
}

type nodeState struct {
	Index int `json:"index"`
	// Killed keeps Up of another run from taking a node for crashed that a test
	// killed on purpose; Start and Up clear it.
	Killed bool `json:"killed,omitempty"`
	Frozen bool `json:"frozen,omitempty"`
	// Cuts are the partitions in force.
	Cuts []Cut `json:"cuts,omitempty"`
}

// process names one process for ever: a pid comes again, a pid with its start
// time does not.
type process struct {
	// Name is "etcd" or "kubelet/node1".
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Start is field 22 of /proc/PID/stat, in clock ticks since boot.
	Start uint64 `json:"start"`
}

func (s *state) node(index int) *nodeState {
	for i := range s.Nodes {
		if s.Nodes[i].Index == index {
			return &s.Nodes[i]
		}
	}
	return nil
}

func (s *state) process(name string) (process, bool) {
	for _, p := range s.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return process{}, false
}

// put records p in place of an older process of the same name.
func (s *state) put(p process) {
	s.Processes = slices.DeleteFunc(s.Processes, func(q process) bool { return q.Name == p.Name })
	s.Processes = append(s.Processes, p)
}

// forgetNode drops the processes of one node.
func (s *state) forgetNode(name string) {
	s.Processes = slices.DeleteFunc(s.Processes, func(p process) bool {
		return strings.HasSuffix(p.Name, "/"+name)
	})
}

// loadState returns nil and no error when there is no state file.
func loadState(path string) (*state, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read the cluster's state %s: %w; run down, which does without it", path, err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("the cluster's state %s has version %d, want %d: run down, which does without it", path, s.Version, stateVersion)
	}
	return &s, nil
}

// save writes the state so that a reader sees the old file or the new one.
func (s *state) save(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the cluster's state: %w", err)
	}
	return writeFileAtomic(path, append(data, '\n'), 0o600)
}

// writeFileAtomic writes a neighbour file and renames it.
func writeFileAtomic(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(tmp.Name()))
	}
	return nil
}
