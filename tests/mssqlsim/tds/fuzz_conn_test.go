package tds

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// mirror answers each request with its parameters.
type mirror struct{}

func (mirror) Login(context.Context, *Conn, Login) (Session, LoginResult, error) {
	return mirror{}, LoginResult{Database: "master"}, nil
}
func (mirror) State() SessionState         { return SessionState{Database: "master"} }
func (mirror) Reset(context.Context, bool) {}
func (mirror) Close()                      {}
func (mirror) Execute(_ context.Context, r Request, out *Response) {
	columns := []Column{{Name: "sql", Type: sqltypes.TNVarCharMax}}
	row := []sqltypes.Value{sqltypes.NewNVarChar(r.SQL + r.Proc)}
	for _, p := range r.Params {
		t := p.Type
		if p.Value.IsVariant() {
			t = sqltypes.TVariant
		}
		columns = append(columns, Column{Name: p.Name, Type: t})
		row = append(row, p.Value)
	}
	_ = out.Columns(columns)
	_ = out.Row(row)
	_ = out.Done(Done{Count: 1, Counted: true})
}

func packet(kind byte, payload []byte) []byte {
	var b bytes.Buffer
	w := newPacketWriter(&b, kind, 0, defaultPacketSize)
	_, _ = w.Write(payload)
	_ = w.end()
	return b.Bytes()
}

// FuzzConnection throws bytes at a server, from the first one or after a login. Whatever
// comes, the connection ends by itself once the client is gone.
func FuzzConnection(f *testing.F) {
	headers := []byte{22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}
	f.Add(true, packet(typeBatch, append(bytes.Clone(headers), encodeUCS2("SELECT 1")...)))
	f.Add(true, packet(typeRPC, append(bytes.Clone(headers), rpc(tIntN, 4, 4, 1, 0, 0, 0)...)))
	f.Add(true, append(packet(typeTransaction, append(bytes.Clone(headers), 5, 0, 0, 0)), packet(typeAttention, nil)...))
	f.Add(false, []byte{firstTLSByte, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	f.Add(false, packet(typePrelogin, preloginReply([4]byte{}, encryptOn)))
	server := NewServer(mirror{}, Config{LoginTimeout: 2 * time.Second, MaxMessage: 1 << 20})
	f.Fuzz(func(t *testing.T, loggedIn bool, b []byte) {
		client, conn := net.Pipe()
		ended := make(chan struct{})
		go func() {
			server.ServeConn(t.Context(), conn)
			close(ended)
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if loggedIn {
			_, _ = client.Write(packet(typePrelogin, preloginReply([4]byte{}, encryptNotSupported)))
			_, _ = client.Write(packet(typeLogin7, login7("sa", "Password1!", nil)))
		}
		_, _ = client.Write(b)
		_ = client.Close()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the connection does not end")
		}
	})
}
