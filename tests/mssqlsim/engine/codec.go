package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// tagged is the encoded form of a record or message: its kind and its JSON.
type tagged struct {
	Kind string          `json:"k"`
	Body json.RawMessage `json:"v"`
}

func encodeTagged(kind string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return json.Marshal(tagged{kind, body})
}

func decodeAs[T any](body []byte) (T, error) {
	var v T
	err := json.Unmarshal(body, &v)
	return v, err
}

func recordKind(r Record) string {
	switch r.(type) {
	case PutServer:
		return "server"
	case PutDatabase:
		return "database"
	case RemoveDatabaseRecord:
		return "drop-database"
	case PutGroup:
		return "group"
	case RemoveGroup:
		return "drop-group"
	case AppendLog:
		return "log"
	case CutLog:
		return "cut"
	case PutImage:
		return "image"
	case AddBackup:
		return "backup"
	}
	return ""
}

func decodeRecord(t tagged) (r Record, err error) {
	switch t.Kind {
	case "server":
		return decodeAs[PutServer](t.Body)
	case "database":
		return decodeAs[PutDatabase](t.Body)
	case "drop-database":
		return decodeAs[RemoveDatabaseRecord](t.Body)
	case "group":
		return decodeAs[PutGroup](t.Body)
	case "drop-group":
		return decodeAs[RemoveGroup](t.Body)
	case "log":
		return decodeAs[AppendLog](t.Body)
	case "cut":
		return decodeAs[CutLog](t.Body)
	case "image":
		return decodeAs[PutImage](t.Body)
	case "backup":
		return decodeAs[AddBackup](t.Body)
	}
	return nil, fmt.Errorf("decode a write-ahead record: unknown kind %q", t.Kind)
}

const frameHeader = 8

// maxFrame bounds a frame so that a torn header does not ask for absurd memory.
const maxFrame = 1 << 30

// EncodeRecords encodes the records of one Persist as frames of length (4 bytes, little-endian),
// CRC-32 and JSON, to be appended to a write-ahead file and synced.
func EncodeRecords(records []Record) ([]byte, error) {
	var out []byte
	for _, r := range records {
		b, err := encodeTagged(recordKind(r), r)
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(b)))
		out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(b))
		out = append(out, b...)
	}
	return out, nil
}

// ErrTorn tells that a write-ahead file ends in the middle of a frame or in a damaged one: what a
// kill during a write leaves. Everything before it is valid.
var ErrTorn = errors.New("the write-ahead file ends in an incomplete record")

// ReadRecords reads frames up to the end and applies them to the disk. It returns the length of the
// valid part; the error is ErrTorn when something follows it, to be cut off before appending.
func (d *Disk) ReadRecords(r io.Reader) (valid int64, err error) {
	var head [frameHeader]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return valid, nil
			}
			return valid, ErrTorn
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n > maxFrame {
			return valid, ErrTorn
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil || crc32.ChecksumIEEE(b) != binary.LittleEndian.Uint32(head[4:]) {
			return valid, ErrTorn
		}
		var t tagged
		if err := json.Unmarshal(b, &t); err != nil {
			return valid, ErrTorn
		}
		rec, err := decodeRecord(t)
		if err != nil {
			return valid, err
		}
		d.Apply(rec)
		valid += frameHeader + int64(n)
	}
}

// Snapshot encodes the whole volume.
func (d *Disk) Snapshot() ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode the volume: %w", err)
	}
	return b, nil
}

// RestoreDisk reads what Snapshot wrote.
func RestoreDisk(b []byte) (*Disk, error) {
	d := NewDisk()
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("read a volume snapshot: %w", err)
	}
	return d, nil
}

func messageKind(m Message) string {
	switch m.(type) {
	case Hello:
		return "hello"
	case GroupStatus:
		return "status"
	case Ping:
		return "ping"
	case JoinRequest:
		return "join"
	case JoinReply:
		return "joined"
	case Attach:
		return "attach"
	case Attached:
		return "attached"
	case AttachRefused:
		return "refused"
	case CopyReady:
		return "copy"
	case CopyPlan:
		return "plan"
	case CopySuspended:
		return "suspended"
	case SuspendCopy:
		return "suspend"
	case Configure:
		return "configure"
	case Configured:
		return "configured"
	case Committed:
		return "committed"
	case LogData:
		return "log"
	case LogAck:
		return "ack"
	case Detach:
		return "detach"
	case Handover:
		return "handover"
	case HandoverReady:
		return "handover-ready"
	case SeedRequest:
		return "seed"
	case SeedProgress:
		return "seed-progress"
	case SeedImage:
		return "seed-image"
	case SeedFailed:
		return "seed-failed"
	}
	return ""
}

// EncodeMessage encodes a message for another process; the transport frames it.
func EncodeMessage(m Message) ([]byte, error) { return encodeTagged(messageKind(m), m) }

// DecodeMessage reads what EncodeMessage wrote.
func DecodeMessage(b []byte) (Message, error) {
	var t tagged
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	m, err := decodeMessage(t)
	if err != nil {
		return nil, fmt.Errorf("decode a message of kind %q: %w", t.Kind, err)
	}
	return m, nil
}

func decodeMessage(t tagged) (Message, error) {
	switch t.Kind {
	case "hello":
		return decodeAs[Hello](t.Body)
	case "status":
		return decodeAs[GroupStatus](t.Body)
	case "ping":
		return Ping{}, nil
	case "join":
		return decodeAs[JoinRequest](t.Body)
	case "joined":
		return decodeAs[JoinReply](t.Body)
	case "attach":
		return decodeAs[Attach](t.Body)
	case "attached":
		return complete(decodeAs[Attached](t.Body))(func(m Attached) bool { return m.Config != nil })
	case "refused":
		return decodeAs[AttachRefused](t.Body)
	case "copy":
		return decodeAs[CopyReady](t.Body)
	case "plan":
		return decodeAs[CopyPlan](t.Body)
	case "suspended":
		return decodeAs[CopySuspended](t.Body)
	case "suspend":
		return decodeAs[SuspendCopy](t.Body)
	case "configure":
		return complete(decodeAs[Configure](t.Body))(func(m Configure) bool { return m.Config != nil })
	case "configured":
		return decodeAs[Configured](t.Body)
	case "committed":
		return decodeAs[Committed](t.Body)
	case "log":
		return complete(decodeAs[LogData](t.Body))(func(m LogData) bool {
			for _, r := range m.Records {
				if r == nil {
					return false
				}
			}
			return true
		})
	case "ack":
		return decodeAs[LogAck](t.Body)
	case "detach":
		return decodeAs[Detach](t.Body)
	case "handover":
		return decodeAs[Handover](t.Body)
	case "handover-ready":
		return decodeAs[HandoverReady](t.Body)
	case "seed":
		return decodeAs[SeedRequest](t.Body)
	case "seed-progress":
		return decodeAs[SeedProgress](t.Body)
	case "seed-image":
		return complete(decodeAs[SeedImage](t.Body))(func(m SeedImage) bool { return m.State != nil && m.Image != nil })
	case "seed-failed":
		return decodeAs[SeedFailed](t.Body)
	}
	return nil, errors.New("unknown kind")
}

// complete refuses a message that lacks what its receiver relies on.
func complete[T Message](m T, err error) func(func(T) bool) (Message, error) {
	return func(ok func(T) bool) (Message, error) {
		if err != nil {
			return nil, err
		}
		if !ok(m) {
			return nil, errors.New("incomplete")
		}
		return m, nil
	}
}
