package tds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// login7 builds a LOGIN7 payload with a user, a password and a feature list.
func login7(user, password string, features []byte) []byte {
	b := make([]byte, login7FixedSize)
	binary.LittleEndian.PutUint32(b[4:], tdsVersion74)
	binary.LittleEndian.PutUint32(b[8:], 4096)
	b[26] = 0x20
	put := func(at int, data []byte) {
		binary.LittleEndian.PutUint16(b[at:], uint16(len(b)))
		binary.LittleEndian.PutUint16(b[at+2:], uint16(len(data)/2))
		b = append(b, data...)
	}
	put(40, encodeUCS2(user))
	mangled := encodeUCS2(password)
	for i, c := range mangled {
		mangled[i] = (c<<4 | c>>4) ^ 0xA5
	}
	put(44, mangled)
	if features != nil {
		b[27] |= 0x10
		binary.LittleEndian.PutUint16(b[56:], uint16(len(b)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(b)+4))
		b = append(b, features...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

func TestParseLogin7(t *testing.T) {
	t.Parallel()
	l, err := parseLogin7(login7("sä", "P@ss{}wörd", []byte{0x0A, 1, 0, 0, 0, 1, 0xFF}))
	if err != nil {
		t.Fatal(err)
	}
	if l.User != "sä" || l.Password != "P@ss{}wörd" || !l.ReadOnlyIntent || !bytes.Equal(l.features[0x0A], []byte{1}) {
		t.Errorf("login = %+v", l)
	}
	if text := l.String(); strings.Contains(text, "P@ss") {
		t.Errorf("the text of a login shows its password: %s", text)
	}
}

func TestParseLogin7_RefusesFieldsOutsideTheMessage(t *testing.T) {
	t.Parallel()
	b := login7("sa", "x", nil)
	binary.LittleEndian.PutUint16(b[40:], uint16(len(b)-2))
	if l, err := parseLogin7(b); err == nil {
		t.Errorf("login = %+v, want an error", l)
	}
}

func TestReadMessage(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	w := newPacketWriter(&wire, typeBatch, 51, 512)
	payload := bytes.Repeat([]byte("abc"), 700)
	_, _ = w.Write(payload)
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	whole := wire.Bytes()
	t.Run("joins the packets of a message", func(t *testing.T) {
		t.Parallel()
		m, err := readMessage(bytes.NewReader(whole), 1<<20)
		if err != nil || m.kind != typeBatch || !bytes.Equal(m.payload, payload) {
			t.Errorf("message of type %d with %d bytes, %v", m.kind, len(m.payload), err)
		}
	})
	t.Run("refuses more than the limit", func(t *testing.T) {
		t.Parallel()
		if _, err := readMessage(bytes.NewReader(whole), 1000); !errors.Is(err, errMessageTooLarge) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("reports a message cut short", func(t *testing.T) {
		t.Parallel()
		if _, err := readMessage(bytes.NewReader(whole[:len(whole)-1]), 1<<20); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("a packet size of an exact multiple ends with an empty packet or none", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		w := newPacketWriter(&b, typeReply, 51, 512)
		_, _ = w.Write(make([]byte, 2*(512-headerSize)))
		_ = w.end()
		m, err := readMessage(&b, 1<<20)
		if err != nil || len(m.payload) != 2*(512-headerSize) || b.Len() != 0 {
			t.Errorf("%d bytes, %d left, %v", len(m.payload), b.Len(), err)
		}
	})
}

func TestDeclaredNames(t *testing.T) {
	t.Parallel()
	got := declaredNames("@p1 numeric(10, 2), @Näme nvarchar(max) = N'a', @_x int output")
	if diff := cmp.Diff([]string{"@p1", "@Näme", "@_x"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestCodePage_EveryByteRoundTrips(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if got := encode1252(decode1252(all)); !bytes.Equal(got, all) {
		t.Errorf("bytes changed: %x", got)
	}
	if got := encode1252("a→b"); string(got) != "a?b" {
		t.Errorf("a character outside the code page became %q", got)
	}
}

func TestParseTransaction(t *testing.T) {
	t.Parallel()
	name := encodeUCS2("a]b")
	cases := []struct {
		name string
		in   []byte
		want string
	}{
		{"begin at the default level", []byte{5, 0, 0, 0}, "BEGIN TRANSACTION"},
		{"begin serializable", []byte{5, 0, 4, 0}, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRANSACTION"},
		{"commit and begin anew", []byte{7, 0, 0, 1, 2, 0}, "COMMIT TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION"},
		{"save with a name that needs quoting", append([]byte{9, 0, 6}, name...), "SAVE TRANSACTION [a]]b]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseTransaction(c.in); err != nil || got != c.want {
				t.Errorf("= %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// rpc builds an sp_executesql call with one parameter of the given type and value bytes.
func rpc(typeAndValue ...byte) []byte {
	b := []byte{0xFF, 0xFF, 10, 0, 0, 0}
	b = append(b, 0, 0)
	b = appendTypeInfo(b, sqltypes.TNVarChar(20))
	b, _ = appendValue(b, sqltypes.TNVarChar(20), sqltypes.NewNVarChar("SELECT @p1"))
	b = append(append(b, 3), encodeUCS2("@p1")...)
	return append(append(b, 0), typeAndValue...)
}

func TestParseRPC_ValuesOfOtherClients(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		in   []byte
		want sqltypes.Value
	}{
		{"fixed int", []byte{tInt4, 5, 0, 0, 0}, sqltypes.NewInt(5)},
		{"fixed bit", []byte{tBit, 1}, sqltypes.NewBit(true)},
		{"decimal", []byte{tDecimalN, 5, 9, 2, 5, 0, 0xD2, 4, 0, 0}, mustDecimal(sqltypes.Type{ID: sqltypes.Decimal, Prec: 9, Scale: 2}, -1234)},
		{"money", []byte{tMoneyN, 8, 8, 0, 0, 0, 0, 0x10, 0x27, 0, 0}, mustDecimal(sqltypes.TNumeric(19, 4), 10000)},
		{"text", append([]byte{tText, 3, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}, "a\x80b"...), sqltypes.NewText(sqltypes.TVarCharMax, "a€b")},
		{"chunked text of unknown length", append(append([]byte{tNVarChar, 0xFF, 0xFF, 0, 0, 0, 0, 0},
			0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF), 2, 0, 0, 0, 'a', 0, 2, 0, 0, 0, 'b', 0, 0, 0, 0, 0), sqltypes.NewText(sqltypes.TNVarCharMax, "ab")},
		{"variant", []byte{tVariant, 0x49, 0x1F, 0, 0, 6, 0, 0, 0, tInt4, 0, 7, 0, 0, 0}, sqltypes.NewInt(7).AsVariant()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls, err := parseRPC(rpc(c.in...))
			if err != nil {
				t.Fatal(err)
			}
			if got := calls[0].params[1].Value; got != c.want {
				t.Errorf("value = %+v, want %+v", got, c.want)
			}
		})
	}
}
