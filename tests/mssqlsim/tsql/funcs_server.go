package tsql

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// random64 is the session's generator: a counter hashed with the session's identity.
func (s *Session) random64() uint64 {
	s.random++
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], s.random)
	binary.BigEndian.PutUint64(b[8:], uint64(s.id))
	h := sha256.Sum256(append([]byte(s.server), b[:]...))
	return binary.BigEndian.Uint64(h[:8])
}

func serverFuncs(m map[string]builtin) {
	m["serverproperty"] = builtin{min: 1, max: 1, fixed: sqltypes.TVariant, strict: true, stable: true, eval: func(f *frame, a []value) (value, error) {
		switch v := f.ex.in.Property(str(a[0])).(type) {
		case string:
			return sqltypes.NewNVarChar(v).AsVariant(), nil
		case int:
			return sqltypes.NewInt(int32(v)).AsVariant(), nil
		}
		return sqltypes.Null(sqltypes.TVariant), nil
	}}
	m["newid"] = builtin{fixed: sqltypes.TGUID, eval: func(f *frame, _ []value) (value, error) {
		s := f.ex.s
		s.random++
		var b [24]byte
		binary.BigEndian.PutUint64(b[:8], s.random)
		binary.BigEndian.PutUint64(b[8:16], uint64(s.id))
		binary.BigEndian.PutUint64(b[16:], uint64(f.ex.hst.UnixNano()))
		h := sha256.Sum256(append([]byte(s.server), b[:]...))
		var g [16]byte
		copy(g[:], h[:16])
		g[6], g[8] = g[6]&0x0F|0x40, g[8]&0x3F|0x80
		return sqltypes.NewGUID(g), nil
	}}
	m["newsequentialid"] = m["newid"]
	login := func(f *frame, _ []value) (value, error) {
		return sqltypes.NewNVarChar(f.ex.in.LoginName(f.ex.s.id)), nil
	}
	for _, n := range [...]string{"original_login", "system_user"} {
		m[n] = builtin{fixed: fixedNV(128), eval: login}
	}
	byName := func(f *frame, a []value) (value, error) {
		if len(a) == 0 {
			return login(f, a)
		}
		for _, p := range f.ex.in.ServerPrincipals(f.ex.hst, f.ex.s.id) {
			if a[0].Type().IsBinary() && string(p.SID) == string(a[0].Bytes()) {
				return sqltypes.NewNVarChar(p.Name), nil
			}
			if n, err := num(a[0]); !a[0].Type().IsBinary() && err == nil && int64(p.ID) == n {
				return sqltypes.NewNVarChar(p.Name), nil
			}
		}
		return sqltypes.Null(fixedNV(128)), nil
	}
	m["suser_sname"] = builtin{min: 0, max: 1, fixed: fixedNV(128), strict: true, eval: byName}
	m["suser_name"] = m["suser_sname"]
	m["suser_sid"] = builtin{min: 0, max: 2, fixed: sqltypes.TVarBinary(85), strict: true, eval: func(f *frame, a []value) (value, error) {
		if len(a) == 0 {
			return sqltypes.NewBinary(f.ex.in.LoginSID(f.ex.s.id)), nil
		}
		for _, p := range f.ex.in.ServerPrincipals(f.ex.hst, f.ex.s.id) {
			if equalName(p.Name, str(a[0])) {
				return sqltypes.NewBinary(p.SID), nil
			}
		}
		return sqltypes.Null(sqltypes.TVarBinary(85)), nil
	}}
	m["suser_id"] = builtin{min: 0, max: 1, fixed: sqltypes.TInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		want := f.ex.in.LoginName(f.ex.s.id)
		if len(a) > 0 {
			want = str(a[0])
		}
		for _, p := range f.ex.in.ServerPrincipals(f.ex.hst, f.ex.s.id) {
			if equalName(p.Name, want) {
				return sqltypes.NewInt(int32(p.ID)), nil
			}
		}
		return sqltypes.Null(sqltypes.TInt), nil
	}}
	user := builtin{min: 0, max: 1, fixed: fixedNV(128), strict: true, eval: func(f *frame, a []value) (value, error) {
		if len(a) == 0 {
			return nvOrNull(f.ex.in.UserName(f.ex.s.id)), nil
		}
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		db, _ := f.ex.in.CurrentDatabase(f.ex.s.id)
		for _, p := range f.ex.in.DatabasePrincipals(f.ex.hst, f.ex.s.id, db) {
			if int64(p.ID) == n {
				return sqltypes.NewNVarChar(p.Name), nil
			}
		}
		return sqltypes.Null(fixedNV(128)), nil
	}}
	for _, n := range [...]string{"user_name", "current_user", "session_user", "user"} {
		m[n] = user
	}
	m["user_id"] = builtin{min: 0, max: 1, fixed: sqltypes.TInt, strict: true, eval: principalID}
	m["database_principal_id"] = m["user_id"]
	m["host_name"] = builtin{fixed: fixedNV(128), eval: func(f *frame, _ []value) (value, error) { return nvOrNull(f.ex.s.login.HostName), nil }}
	app := builtin{fixed: fixedNV(128), eval: func(f *frame, _ []value) (value, error) { return nvOrNull(f.ex.s.login.AppName), nil }}
	m["app_name"], m["program_name"] = app, app
	m["is_srvrolemember"] = builtin{min: 1, max: 2, fixed: sqltypes.TInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		who := ""
		if len(a) == 2 {
			who = str(a[1])
		}
		return boolOrNull(f.ex.in.IsServerRoleMember(f.ex.s.id, str(a[0]), who)), nil
	}}
	member := builtin{min: 1, max: 2, fixed: sqltypes.TInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		return boolOrNull(f.ex.in.IsDatabaseRoleMember(f.ex.s.id, str(a[0]))), nil
	}}
	m["is_member"], m["is_rolemember"] = member, member
	m["has_perms_by_name"] = builtin{min: 3, max: 5, fixed: sqltypes.TInt, eval: hasPermission}
	m["has_dbaccess"] = builtin{min: 1, max: 1, fixed: sqltypes.TInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		db, ok := f.ex.in.LookupDatabase(str(a[0]))
		if !ok {
			return sqltypes.Null(sqltypes.TInt), nil
		}
		return boolOrNull(!engine.Failed(f.ex.in.CheckAccess(f.ex.hst, f.ex.s.id, db, false)), true), nil
	}}
	m["cert_id"] = builtin{min: 1, max: 1, fixed: sqltypes.TInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		if n, ok := f.ex.in.CertificateID(str(a[0])); ok {
			return sqltypes.NewInt(int32(n)), nil
		}
		return sqltypes.Null(sqltypes.TInt), nil
	}}
	m["certencoded"] = builtin{min: 1, max: 1, fixed: sqltypes.TVarBinary(8000), strict: true, eval: func(f *frame, a []value) (value, error) {
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		if b := f.ex.in.CertificateEncoded(f.ex.s.id, int(n)); b != nil {
			return sqltypes.NewBinary(b), nil
		}
		return sqltypes.Null(sqltypes.TVarBinary(8000)), nil
	}}
	m["certprivatekey"] = builtin{min: 2, max: 3, fixed: sqltypes.TVarBinary(8000), strict: true, eval: func(f *frame, a []value) (value, error) {
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		if b := f.ex.in.CertificatePrivateKey(f.ex.hst, f.ex.s.id, int(n), str(a[1])); b != nil {
			return sqltypes.NewBinary(b), nil
		}
		return sqltypes.Null(sqltypes.TVarBinary(8000)), nil
	}}
	m["sys.fn_hadr_is_primary_replica"] = builtin{min: 1, max: 1, fixed: sqltypes.TBit, strict: true, eval: func(f *frame, a []value) (value, error) {
		if r := f.ex.in.IsPrimaryReplica(str(a[0])); r.OK {
			return sqltypes.NewBit(r.V), nil
		}
		return sqltypes.Null(sqltypes.TBit), nil
	}}
	m["sys.fn_hadr_backup_is_preferred_replica"] = builtin{min: 1, max: 1, fixed: sqltypes.TBit, strict: true, eval: func(f *frame, a []value) (value, error) {
		return sqltypes.NewBit(f.ex.in.IsPreferredBackupReplica(str(a[0]))), nil
	}}
	m["session_context"] = builtin{min: 1, max: 1, fixed: sqltypes.TVariant, strict: true, eval: func(f *frame, a []value) (value, error) {
		if s, ok := f.ex.in.SessionContext(f.ex.s.id, str(a[0])); ok {
			return sqltypes.NewNVarChar(s).AsVariant(), nil
		}
		return sqltypes.Null(sqltypes.TVariant), nil
	}}
	m["connectionproperty"] = builtin{min: 1, max: 1, fixed: sqltypes.TVariant, strict: true, eval: func(f *frame, a []value) (value, error) {
		l := f.ex.s.login
		text := func(s string) (value, error) { return sqltypes.NewNVarChar(s).AsVariant(), nil }
		switch strings.ToLower(str(a[0])) {
		case "net_transport":
			return text("TCP")
		case "protocol_type":
			return text("TSQL")
		case "auth_scheme":
			return text("SQL")
		case "client_net_address":
			return text(l.Address)
		}
		return sqltypes.Null(sqltypes.TVariant), nil
	}}
	m["sessionproperty"] = builtin{min: 1, max: 1, fixed: sqltypes.TVariant, strict: true, eval: func(f *frame, a []value) (value, error) {
		on := true
		switch strings.ToUpper(str(a[0])) {
		case "QUOTED_IDENTIFIER":
			on = f.ex.s.opts.quotedIdent
		case "ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ARITHABORT", "CONCAT_NULL_YIELDS_NULL":
		case "NUMERIC_ROUNDABORT":
			on = false
		default:
			return sqltypes.Null(sqltypes.TVariant), nil
		}
		return boolOrNull(on, true).AsVariant(), nil
	}}
	m["pwdcompare"] = builtin{min: 2, max: 3, fixed: sqltypes.TInt, strict: true, eval: func(_ *frame, a []value) (value, error) {
		h, err := sqltypes.Cast(a[1], sqltypes.TVarBinary(256), 0)
		if err != nil {
			return h, err
		}
		return boolOrNull(pwdCompare(str(a[0]), h.Bytes()), true), nil
	}}
}

func boolOrNull(b, ok bool) value {
	switch {
	case !ok:
		return sqltypes.Null(sqltypes.TInt)
	case b:
		return sqltypes.NewInt(1)
	}
	return sqltypes.NewInt(0)
}

func principalID(f *frame, a []value) (value, error) {
	db, _ := f.ex.in.CurrentDatabase(f.ex.s.id)
	want := ""
	if len(a) > 0 {
		want = str(a[0])
	} else {
		want = f.ex.in.UserName(f.ex.s.id)
	}
	for _, p := range f.ex.in.DatabasePrincipals(f.ex.hst, f.ex.s.id, db) {
		if equalName(p.Name, want) {
			return sqltypes.NewInt(int32(p.ID)), nil
		}
	}
	return sqltypes.Null(sqltypes.TInt), nil
}

// hasPermission is HAS_PERMS_BY_NAME(securable, class, permission).
func hasPermission(f *frame, a []value) (value, error) {
	if a[2].IsNull() {
		return sqltypes.Null(sqltypes.TInt), nil
	}
	class := engine.SecurableClass("")
	object := ""
	if !a[0].IsNull() {
		object = str(a[0])
	}
	if !a[1].IsNull() {
		class = engine.SecurableClass(strings.ToUpper(str(a[1])))
		if object == "" && class == engine.ClassDatabase {
			_, object = f.ex.in.CurrentDatabase(f.ex.s.id)
		}
	}
	return boolOrNull(f.ex.in.HasPermission(f.ex.s.id, class, object, strings.ToUpper(str(a[2]))), true), nil
}

// pwdCompare checks a password against a hash of version 2: 0x0200, a salt of 4 bytes, and
// SHA-512 of the UTF-16 password with the salt.
func pwdCompare(password string, hash []byte) bool {
	if len(hash) != 2+4+64 || hash[0] != 2 || hash[1] != 0 {
		return false
	}
	var b []byte
	for _, c := range utf16.Encode([]rune(password)) {
		b = append(b, byte(c), byte(c>>8))
	}
	h := sha512.Sum512(append(b, hash[2:6]...))
	return string(h[:]) == string(hash[6:])
}

func errorFuncs(m map[string]builtin) {
	caught := func(t sqltypes.Type, get func(e *stmtError) value) builtin {
		return builtin{fixed: t, eval: func(f *frame, _ []value) (value, error) {
			l := f.ex.s.caught
			if len(l) == 0 {
				return sqltypes.Null(t), nil
			}
			return get(l[len(l)-1]), nil
		}}
	}
	m["error_number"] = caught(sqltypes.TInt, func(e *stmtError) value { return sqltypes.NewInt(e.m.Number) })
	m["error_severity"] = caught(sqltypes.TInt, func(e *stmtError) value { return sqltypes.NewInt(int32(e.m.Class)) })
	m["error_state"] = caught(sqltypes.TInt, func(e *stmtError) value { return sqltypes.NewInt(int32(e.m.State)) })
	m["error_line"] = caught(sqltypes.TInt, func(e *stmtError) value { return sqltypes.NewInt(int32(e.line)) })
	m["error_message"] = caught(fixedNV(4000), func(e *stmtError) value { return sqltypes.NewNVarChar(e.m.Message) })
	m["error_procedure"] = caught(fixedNV(128), func(e *stmtError) value { return nvOrNull(e.proc) })
	m["xact_state"] = builtin{fixed: sqltypes.TSmallInt, eval: func(f *frame, _ []value) (value, error) {
		s := f.ex.s
		switch {
		case s.doomed:
			return sqltypes.NewSmallInt(-1), nil
		case s.tranCount > 0:
			return sqltypes.NewSmallInt(1), nil
		}
		return sqltypes.NewSmallInt(0), nil
	}}
}

// global binds a function of the form @@name.
func (b *binder) global(x *varExpr) (bexpr, error) {
	get := func(t sqltypes.Type, fn func(ex *exec) value) (bexpr, error) {
		return bexpr{typ: t, eval: func(f *frame) (value, error) { return fn(f.ex), nil }}, nil
	}
	number := func(fn func(ex *exec) int64) (bexpr, error) {
		return get(sqltypes.TInt, func(ex *exec) value { return sqltypes.NewInt(int32(fn(ex))) })
	}
	switch x.name {
	case "@@servername":
		return get(fixedNV(128), func(ex *exec) value { return sqltypes.NewNVarChar(ex.in.ServerName()) })
	case "@@servicename":
		return get(fixedNV(128), func(*exec) value { return sqltypes.NewNVarChar("MSSQLSERVER") })
	case "@@version":
		return get(fixedNV(300), func(ex *exec) value { return sqltypes.NewNVarChar(ex.version()) })
	case "@@rowcount":
		return number(func(ex *exec) int64 { return ex.s.rowCount })
	case "@@error":
		return number(func(ex *exec) int64 { return int64(ex.s.lastError) })
	case "@@trancount":
		return number(func(ex *exec) int64 { return int64(ex.s.tranCount) })
	case "@@nestlevel":
		return number(func(ex *exec) int64 { return int64(ex.depth) })
	case "@@spid":
		return get(sqltypes.TSmallInt, func(ex *exec) value { return sqltypes.NewSmallInt(int16(ex.s.id)) })
	case "@@procid", "@@fetch_status", "@@cursor_rows", "@@cpu_busy", "@@io_busy", "@@idle", "@@pack_received", "@@pack_sent",
		"@@packet_errors", "@@total_errors", "@@total_read", "@@total_write", "@@timeticks", "@@langid":
		return number(func(*exec) int64 { return 0 })
	case "@@connections":
		return number(func(ex *exec) int64 { return int64(ex.s.id) })
	case "@@max_connections":
		return number(func(*exec) int64 { return 32767 })
	case "@@max_precision":
		return get(sqltypes.TTinyInt, func(*exec) value { return sqltypes.NewTinyInt(38) })
	case "@@datefirst":
		return get(sqltypes.TTinyInt, func(*exec) value { return sqltypes.NewTinyInt(7) })
	case "@@lock_timeout":
		return number(func(ex *exec) int64 {
			if ex.s.opts.lockTimeout < 0 {
				return -1
			}
			return ex.s.opts.lockTimeout.Milliseconds()
		})
	case "@@language":
		return get(fixedNV(128), func(ex *exec) value { return sqltypes.NewNVarChar(ex.s.opts.language) })
	case "@@textsize":
		return number(func(ex *exec) int64 { return ex.s.opts.textSize })
	case "@@options":
		return number(func(ex *exec) int64 {
			n := int64(5432) // the ANSI options that every client sets
			if ex.s.opts.nocount {
				n |= 512
			}
			if ex.s.opts.xactAbort {
				n |= 16384
			}
			return n
		})
	case "@@identity":
		return get(sqltypes.TNumeric(38, 0), func(ex *exec) value { return ex.s.identity })
	case "@@microsoftversion":
		return number(func(ex *exec) int64 {
			n, _ := ex.major()
			return int64(n) << 24
		})
	case "@@dbts":
		return get(sqltypes.TVarBinary(8), func(*exec) value { return sqltypes.NewBinary(make([]byte, 8)) })
	}
	return bexpr{}, errBind(x.line, 137, 15, 2, "Must declare the scalar variable \"%s\".", x.name)
}

// version is @@VERSION.
func (ex *exec) version() string {
	major, full := ex.major()
	year := map[int]string{14: "2017", 15: "2019", 16: "2022", 17: "2025"}[major]
	edition, _ := ex.in.Property("Edition").(string)
	level, _ := ex.in.Property("ProductLevel").(string)
	if u, ok := ex.in.Property("ProductUpdateLevel").(string); ok && u != "" {
		level += "-" + u
	}
	host := ""
	if h, err := ex.in.HostInfo(ex.hst, ex.s.id); err == nil {
		host = h.Platform + " (" + h.Distribution + " " + h.Release + ")"
	}
	return "Microsoft SQL Server " + year + " (" + level + ") - " + full + " (X64) \n\tCopyright (C) Microsoft Corporation\n\t" + edition + " on " + host + " <X64>"
}
