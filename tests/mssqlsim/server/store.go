package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// store is the write-ahead log of an instance with its snapshots:
//
//	snapshot-N   the whole durable state when log-N began (absent for N = 0)
//	log-N        frames of records since then
//
// A frame is length (u32 LE), CRC-32C of the payload (u32 LE), payload. A torn frame at the
// end of the log was never acknowledged and is cut off at opening. A new generation
// appears by renaming a finished snapshot, so a kill at any point leaves either the old
// or the new one whole.
type store struct {
	dir  string
	gen  uint64
	f    *os.File
	size int64
}

const (
	snapshotPrefix = "snapshot-"
	logPrefix      = "log-"
	frameHeader    = 8
	// maxFrame bounds a frame, so that garbage is not taken for a length.
	maxFrame = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn ends the replay: the rest of the file is not a whole frame.
var errTorn = errors.New("torn frame")

// openStore opens or creates the store in dir. It calls snapshot with the content of the
// newest snapshot, if any, and then replay with each frame.
func openStore(dir string, snapshot, replay func([]byte) error) (*store, error) {
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &store{dir: dir}
	for _, n := range names {
		if number, ok := strings.CutPrefix(n.Name(), snapshotPrefix); ok {
			if gen, err := strconv.ParseUint(number, 10, 63); err == nil && gen > s.gen {
				s.gen = gen
			}
		}
	}
	if s.gen > 0 {
		b, err := os.ReadFile(s.name(snapshotPrefix, s.gen))
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		payload, rest, err := readFrame(b)
		if err != nil || len(rest) > 0 {
			return nil, fmt.Errorf("open store: %s is damaged: restore the volume from a backup", s.name(snapshotPrefix, s.gen))
		}
		if err := snapshot(payload); err != nil {
			return nil, fmt.Errorf("open store: read snapshot: %w", err)
		}
	}
	if err := s.openLog(replay); err != nil {
		return nil, err
	}
	s.sweep(names)
	return s, nil
}

func (s *store) name(prefix string, gen uint64) string {
	return filepath.Join(s.dir, prefix+strconv.FormatUint(gen, 10))
}

// openLog replays the log of the current generation and cuts a torn end off.
func (s *store) openLog(replay func([]byte) error) error {
	f, err := os.OpenFile(s.name(logPrefix, s.gen), os.O_RDWR|os.O_CREATE, 0o660)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("open store: %w", err)
	}
	rest := b
	for len(rest) > 0 {
		payload, after, err := readFrame(rest)
		if err != nil {
			break
		}
		if err := replay(payload); err != nil {
			_ = f.Close()
			return fmt.Errorf("open store: replay at byte %d: %w", len(b)-len(rest), err)
		}
		rest = after
	}
	s.f, s.size = f, int64(len(b)-len(rest))
	if err := f.Truncate(s.size); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if _, err := f.Seek(s.size, io.SeekStart); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return syncDir(s.dir)
}

// sweep removes the files of other generations, which a kill may have left.
func (s *store) sweep(names []os.DirEntry) {
	for _, n := range names {
		for _, prefix := range []string{snapshotPrefix, logPrefix} {
			if strings.HasPrefix(n.Name(), prefix) && n.Name() != prefix+strconv.FormatUint(s.gen, 10) {
				_ = os.Remove(filepath.Join(s.dir, n.Name()))
			}
		}
	}
}

func readFrame(b []byte) (payload, rest []byte, err error) {
	if len(b) < frameHeader {
		return nil, nil, errTorn
	}
	n := binary.LittleEndian.Uint32(b)
	if n > maxFrame || int64(n) > int64(len(b)-frameHeader) {
		return nil, nil, errTorn
	}
	payload, rest = b[frameHeader:frameHeader+n], b[frameHeader+n:]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, nil, errTorn
	}
	return payload, rest, nil
}

func appendFrame(b, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

// append makes payloads durable. After an error the store must not be used: what is on
// the disk is not known.
func (s *store) append(payloads ...[]byte) error {
	var b []byte
	for _, p := range payloads {
		b = appendFrame(b, p)
	}
	if _, err := s.f.Write(b); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	if err := s.f.Sync(); err != nil {
		return fmt.Errorf("sync log: %w", err)
	}
	s.size += int64(len(b))
	return nil
}

// tear writes half a frame, as a crash in the middle of a write leaves it.
func (s *store) tear(payload []byte) {
	b := appendFrame(nil, payload)
	_, _ = s.f.Write(b[:len(b)/2])
	_ = s.f.Sync()
}

// rotate starts a new generation whose snapshot is given.
func (s *store) rotate(snapshot []byte) error {
	next := s.gen + 1
	f, err := os.OpenFile(s.name(logPrefix, next), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o660)
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	if err := writeDurably(s.name(snapshotPrefix, next), appendFrame(nil, snapshot)); err != nil {
		_ = f.Close()
		return fmt.Errorf("rotate log: %w", err)
	}
	old := s.gen
	_ = s.f.Close()
	s.f, s.gen, s.size = f, next, 0
	_ = os.Remove(s.name(logPrefix, old))
	_ = os.Remove(s.name(snapshotPrefix, old))
	return nil
}

func (s *store) close() error { return s.f.Close() }

// writeDurably makes a file appear whole under its name.
func writeDurably(name string, content []byte) error {
	temp := filepath.Join(filepath.Dir(name), ".new-"+filepath.Base(name))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o660)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
