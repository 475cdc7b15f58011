package server

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// envelope is a value of an engine interface with the name of its concrete type.
type envelope struct {
	T string
	V json.RawMessage
}

// codec knows the concrete types of an engine interface by name.
type codec[I any] struct{ types map[string]reflect.Type }

func newCodec[I any](values ...I) codec[I] {
	c := codec[I]{types: map[string]reflect.Type{}}
	for _, v := range values {
		t := reflect.TypeOf(v)
		c.types[t.Name()] = t
	}
	return c
}

func (c codec[I]) pack(v I) (envelope, error) {
	name := reflect.TypeOf(v).Name()
	if _, ok := c.types[name]; !ok {
		return envelope{}, fmt.Errorf("encode %T: the type is not known", v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return envelope{}, fmt.Errorf("encode %s: %w", name, err)
	}
	return envelope{T: name, V: b}, nil
}

func (c codec[I]) unpack(e envelope) (I, error) {
	var zero I
	t, ok := c.types[e.T]
	if !ok {
		return zero, fmt.Errorf("decode: the type %q is not known", e.T)
	}
	p := reflect.New(t)
	if err := json.Unmarshal(e.V, p.Interface()); err != nil {
		return zero, fmt.Errorf("decode %s: %w", e.T, err)
	}
	v, ok := p.Elem().Interface().(I)
	if !ok {
		return zero, fmt.Errorf("decode %s: not of the expected kind", e.T)
	}
	return v, nil
}

//nolint:gochecknoglobals // tables of types
var (
	records = newCodec[engine.Record](
		engine.AddBackup{}, engine.AppendLog{}, engine.CutLog{}, engine.PutDatabase{}, engine.PutGroup{},
		engine.PutImage{}, engine.PutServer{}, engine.RemoveDatabaseRecord{}, engine.RemoveGroup{},
	)
	messages = newCodec[engine.Message](
		engine.Attach{}, engine.AttachRefused{}, engine.Attached{}, engine.Committed{}, engine.Configure{},
		engine.Configured{}, engine.CopyPlan{}, engine.CopyReady{}, engine.CopySuspended{}, engine.Detach{},
		engine.GroupStatus{}, engine.Handover{}, engine.HandoverReady{}, engine.Hello{}, engine.JoinReply{},
		engine.JoinRequest{}, engine.LogAck{}, engine.LogData{}, engine.Ping{}, engine.SeedFailed{},
		engine.SeedImage{}, engine.SeedProgress{}, engine.SeedRequest{}, engine.SuspendCopy{},
	)
)

func encodeRecords(list []engine.Record) ([]byte, error) {
	out := make([]envelope, len(list))
	for i, r := range list {
		var err error
		if out[i], err = records.pack(r); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

func decodeRecords(b []byte) ([]engine.Record, error) {
	var in []envelope
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("decode records: %w", err)
	}
	out := make([]engine.Record, len(in))
	for i, e := range in {
		var err error
		if out[i], err = records.unpack(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encodeMessage(m engine.Message) ([]byte, error) {
	e, err := messages.pack(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

func decodeMessage(b []byte) (engine.Message, error) {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("decode message: %w", err)
	}
	return messages.unpack(e)
}

func encodeDisk(d *engine.Disk) ([]byte, error) { return json.Marshal(d) }

func decodeDisk(b []byte) (*engine.Disk, error) {
	d := engine.NewDisk()
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	return d, nil
}
