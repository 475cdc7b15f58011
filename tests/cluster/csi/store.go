package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

// volume is what the store remembers of one volume.
type volume struct {
	// ID is the directory's name and the volume handle.
	ID string `json:"id"`
	// CapacityBytes is what the controller promised.
	CapacityBytes int64 `json:"capacityBytes"`
	// NodeCapacityBytes is what the node has grown the file system to.
	NodeCapacityBytes int64 `json:"nodeCapacityBytes"`
}

// store keeps volumes as directories: <dir>/<id>/volume.json and <dir>/<id>/data.
// The controller and every node share it.
type store struct {
	dir string
	mu  sync.Mutex
}

var errNoVolume = errors.New("no such volume")

func (s *store) path(id string) string     { return filepath.Join(s.dir, id) }
func (s *store) dataPath(id string) string { return filepath.Join(s.path(id), "data") }

// validID keeps a volume's directory inside the store.
func validID(id string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`).MatchString(id)
}

func (s *store) get(id string) (volume, error) {
	if !validID(id) {
		return volume{}, fmt.Errorf("volume %q: %w", id, errNoVolume)
	}
	data, err := os.ReadFile(filepath.Join(s.path(id), "volume.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return volume{}, fmt.Errorf("volume %q: %w", id, errNoVolume)
	}
	if err != nil {
		return volume{}, fmt.Errorf("read volume %s: %w", id, err)
	}
	var v volume
	if err := json.Unmarshal(data, &v); err != nil {
		return volume{}, fmt.Errorf("read volume %s: %w", id, err)
	}
	return v, nil
}

// put writes the record with a rename, so that no reader sees half of it.
func (s *store) put(v volume) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("record volume %s: %w", v.ID, err)
	}
	file := filepath.Join(s.path(v.ID), "volume.json")
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return fmt.Errorf("record volume %s: %w", v.ID, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("record volume %s: %w", v.ID, err)
	}
	return nil
}

// create makes the volume, or returns the one that has the id already.
func (s *store) create(id string, capacity int64) (volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.get(id)
	if err == nil || !errors.Is(err, errNoVolume) {
		return v, err
	}
	if err := os.MkdirAll(s.dataPath(id), 0o755); err != nil {
		return volume{}, fmt.Errorf("create volume %s: %w", id, err)
	}
	v = volume{ID: id, CapacityBytes: capacity, NodeCapacityBytes: capacity}
	return v, s.put(v)
}

// grow raises the controller's capacity, or the node's; it never lowers one.
func (s *store) grow(id string, capacity int64, node bool) (volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.get(id)
	if err != nil {
		return v, err
	}
	field := &v.CapacityBytes
	if node {
		field = &v.NodeCapacityBytes
	}
	if *field >= capacity {
		return v, nil
	}
	*field = capacity
	return v, s.put(v)
}

// remove deletes the volume with its data; a missing one is no error.
func (s *store) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !validID(id) {
		return nil
	}
	if err := os.RemoveAll(s.path(id)); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

// usage sums up the volume's files: bytes on disk and their number.
func (s *store) usage(id string) (bytes, files int64, err error) {
	err = filepath.WalkDir(s.dataPath(id), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			// Files come and go while a server runs.
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		files++
		info, err := d.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		bytes += diskBytes(info)
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure volume %s: %w", id, err)
	}
	return bytes, files, nil
}
