package tds

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func mustDecimal(t sqltypes.Type, n int64) sqltypes.Value {
	v, err := sqltypes.NewDecimal(t, big.NewInt(n))
	if err != nil {
		panic(err) // the test's own constant
	}
	return v
}

func FuzzPrelogin(f *testing.F) {
	f.Add(preloginReply([4]byte{16, 0, 16, 104}, encryptOn))
	f.Add([]byte{1, 0, 6, 0, 1, 0xFF, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePrelogin(b)
		if err == nil && p.hasEncryption && len(b) < 6 {
			t.Errorf("an encryption option in %d bytes", len(b))
		}
		if _, tls, ok := negotiateEncryption(p.encryption, true); ok && !tls {
			t.Errorf("client option %d was let in without the encryption that the server requires", p.encryption)
		}
	})
}

func FuzzLogin7(f *testing.F) {
	f.Add(login7("sa", "Password1!", nil))
	f.Add(login7("sa", "Password1!", []byte{0x0A, 1, 0, 0, 0, 1, 0xFF}))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLogin7(b)
		if err == nil && (len(l.User) > 4*login7MaxField || len(l.Password) > 4*login7MaxField) {
			t.Errorf("a name of %d bytes went through", len(l.User))
		}
	})
}

func FuzzAllHeaders(f *testing.F) {
	f.Add([]byte{22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'S', 0})
	f.Add([]byte{4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := stripHeaders(b)
		if err == nil && !bytes.HasSuffix(b, body) {
			t.Error("the body is not the end of the message")
		}
		if body != nil {
			_, _ = parseTransaction(body)
		}
	})
}

// FuzzRPC checks that what parses can be written back as a return value: the reader and
// the writer know the same types.
func FuzzRPC(f *testing.F) {
	f.Add(rpc(tIntN, 4, 4, 1, 0, 0, 0))
	f.Add(rpc(tDateTimeOffset, 7, 10, 0, 0, 0, 0, 0, 1, 2, 3, 60, 0))
	f.Add(rpc(tVariant, 0x49, 0x1F, 0, 0, 6, 0, 0, 0, tInt4, 0, 7, 0, 0, 0))
	f.Add(rpc(tXML, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 'a', 0, 0, 0, 0, 0))
	f.Add([]byte{8, 0, 's', 0, 'p', 0, '_', 0, 'w', 0, 'h', 0, 'o', 0, '2', 0, '3', 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := parseRPC(b)
		if err != nil {
			return
		}
		for _, c := range calls {
			if len(c.params) > maxParams {
				t.Errorf("%d parameters", len(c.params))
			}
			for _, p := range c.params {
				typ := p.Type
				if p.Value.IsVariant() {
					typ = sqltypes.TVariant
				}
				if _, err := appendReturnValue(nil, 0, Param{Name: p.Name, Type: typ, Value: p.Value}); err != nil {
					t.Errorf("%s %s: %v", p.Name, p.Type, err)
				}
			}
		}
	})
}

// FuzzTemporal checks that a moment survives the way to the wire and back.
func FuzzTemporal(f *testing.F) {
	f.Add(int64(1_795_000_000), uint32(123_456_700), uint8(7), int16(60))
	f.Fuzz(func(t *testing.T, sec int64, nano uint32, scale uint8, offset int16) {
		at := time.Unix(sec%200_000_000_000, int64(nano%1e9)).UTC()
		if at.Year() < 1900 || at.Year() > 9990 || offset < -840 || offset > 840 {
			return
		}
		for _, typ := range []sqltypes.Type{
			sqltypes.TDate, sqltypes.TDateTime,
			{ID: sqltypes.Time, Scale: scale % 8}, {ID: sqltypes.DateTime2, Scale: scale % 8}, {ID: sqltypes.DateTimeOffset, Scale: scale % 8},
		} {
			v := sqltypes.NewTime(typ, at.In(time.FixedZone("", int(offset)*60)))
			b, err := appendValue(appendTypeInfo(nil, typ), typ, v)
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{b: b}
			got := readValue(r, readTypeInfo(r))
			if r.err != nil || got != v {
				t.Errorf("%s: %v became %v, %v", typ, v.Time(), got.Time(), r.err)
			}
		}
	})
}
