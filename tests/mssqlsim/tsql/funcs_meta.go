package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// nvOrNull is text, or NULL when it is empty.
func nvOrNull(s string) value {
	if s == "" {
		return sqltypes.Null(fixedNV(128))
	}
	return sqltypes.NewNVarChar(s)
}

func metaFuncs(m map[string]builtin) {
	name := func(min, max int, fn func(f *frame, a []value) (value, error)) builtin {
		return builtin{min: min, max: max, fixed: fixedNV(128), strict: true, eval: fn}
	}
	id := func(min, max int, fn func(f *frame, a []value) (value, error)) builtin {
		return builtin{min: min, max: max, fixed: sqltypes.TInt, strict: true, eval: fn}
	}
	m["db_name"] = name(0, 1, func(f *frame, a []value) (value, error) {
		if len(a) == 0 {
			_, n := f.ex.in.CurrentDatabase(f.ex.s.id)
			return nvOrNull(n), nil
		}
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		return nvOrNull(f.ex.databaseName(engine.DatabaseID(n))), nil
	})
	m["db_id"] = builtin{min: 0, max: 1, fixed: sqltypes.TSmallInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		if len(a) == 0 {
			n, _ := f.ex.in.CurrentDatabase(f.ex.s.id)
			return sqltypes.NewSmallInt(int16(n)), nil
		}
		if n, ok := f.ex.in.LookupDatabase(str(a[0])); ok {
			return sqltypes.NewSmallInt(int16(n)), nil
		}
		return sqltypes.Null(sqltypes.TSmallInt), nil
	}}
	m["original_db_name"] = name(0, 0, func(f *frame, _ []value) (value, error) { return nvOrNull(f.ex.s.login.Database), nil })
	m["object_id"] = id(1, 2, objectID)
	m["object_name"] = name(1, 2, func(f *frame, a []value) (value, error) {
		_, n, err := f.ex.objectByID(a)
		return nvOrNull(n), err
	})
	m["object_schema_name"] = name(1, 2, func(f *frame, a []value) (value, error) {
		s, _, err := f.ex.objectByID(a)
		return nvOrNull(s), err
	})
	m["schema_name"] = name(0, 1, func(_ *frame, a []value) (value, error) {
		if len(a) == 0 {
			return sqltypes.NewNVarChar("dbo"), nil
		}
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		for _, s := range schemas() {
			if int64(s.id) == n {
				return sqltypes.NewNVarChar(s.name), nil
			}
		}
		return sqltypes.Null(fixedNV(128)), nil
	})
	m["schema_id"] = id(0, 1, func(_ *frame, a []value) (value, error) {
		want := "dbo"
		if len(a) > 0 {
			want = str(a[0])
		}
		for _, s := range schemas() {
			if equalName(s.name, want) {
				return sqltypes.NewInt(int32(s.id)), nil
			}
		}
		return sqltypes.Null(sqltypes.TInt), nil
	})
	m["type_name"] = name(1, 1, func(_ *frame, a []value) (value, error) {
		n, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		for _, t := range systemTypes() {
			if int64(t.user) == n {
				return sqltypes.NewNVarChar(t.name), nil
			}
		}
		return sqltypes.Null(fixedNV(128)), nil
	})
	m["type_id"] = id(1, 1, func(_ *frame, a []value) (value, error) {
		for _, t := range systemTypes() {
			if equalName(t.name, str(a[0])) {
				return sqltypes.NewInt(int32(t.user)), nil
			}
		}
		return sqltypes.Null(sqltypes.TInt), nil
	})
	m["col_length"] = builtin{min: 2, max: 2, fixed: sqltypes.TSmallInt, strict: true, eval: func(f *frame, a []value) (value, error) {
		null := sqltypes.Null(sqltypes.TSmallInt)
		o, ok := splitName(str(a[0]))
		if !ok {
			return null, nil
		}
		r, err := f.ex.resolve(o)
		if err != nil || r.table == nil {
			return null, nil
		}
		at := findColumn(r.table, str(a[1]))
		if at < 0 {
			return null, nil
		}
		return sqltypes.NewSmallInt(int16(maxLength(r.table.Columns[at].Type))), nil
	}}
	m["col_name"] = name(2, 2, func(f *frame, a []value) (value, error) {
		n, err := num(a[1])
		if err != nil {
			return value{}, err
		}
		o, err := num(a[0])
		if err != nil {
			return value{}, err
		}
		db, _ := f.ex.in.CurrentDatabase(f.ex.s.id)
		l, err := f.ex.in.Tables(f.ex.hst, f.ex.s.id, db)
		if err != nil {
			return value{}, err
		}
		for _, t := range l {
			if int64(t.ID) == o && n >= 1 && n <= int64(len(t.Columns)) {
				return sqltypes.NewNVarChar(t.Columns[n-1].Name), nil
			}
		}
		return sqltypes.Null(fixedNV(128)), nil
	})
	m["databasepropertyex"] = builtin{min: 2, max: 2, fixed: sqltypes.TVariant, strict: true, eval: func(f *frame, a []value) (value, error) {
		return f.ex.databaseProperty(str(a[0]), strings.ToLower(str(a[1]))), nil
	}}
	m["objectproperty"] = id(2, 2, func(f *frame, a []value) (value, error) {
		_, n, err := f.ex.objectByID(a[:1])
		if err != nil || n == "" {
			return sqltypes.Null(sqltypes.TInt), err
		}
		isTable := int32(0)
		o, _ := num(a[0])
		db, _ := f.ex.in.CurrentDatabase(f.ex.s.id)
		l, err := f.ex.in.Tables(f.ex.hst, f.ex.s.id, db)
		if err != nil {
			return value{}, err
		}
		for _, t := range l {
			if int64(t.ID) == o {
				isTable = 1
			}
		}
		switch strings.ToLower(str(a[1])) {
		case "istable", "isusertable":
			return sqltypes.NewInt(isTable), nil
		case "ismsshipped":
			return sqltypes.NewInt(0), nil
		}
		return sqltypes.Null(sqltypes.TInt), nil
	})
	m["ident_current"] = builtin{min: 1, max: 1, fixed: sqltypes.TNumeric(38, 0), strict: true, eval: func(f *frame, a []value) (value, error) {
		null := sqltypes.Null(sqltypes.TNumeric(38, 0))
		o, ok := splitName(str(a[0]))
		if !ok {
			return null, nil
		}
		r, err := f.ex.resolve(o)
		if err != nil || r.table == nil || identityColumn(r.table) < 0 {
			return null, nil
		}
		return sqltypes.Cast(sqltypes.NewBigInt(f.ex.in.IdentityValue(f.ex.s.id, r.db, r.table.ID)), sqltypes.TNumeric(38, 0), 0)
	}}
	m["scope_identity"] = builtin{fixed: sqltypes.TNumeric(38, 0), eval: func(f *frame, _ []value) (value, error) { return f.ex.s.identity, nil }}
}

func (ex *exec) databaseName(id engine.DatabaseID) string {
	for _, d := range ex.in.Databases(ex.hst, ex.s.id) {
		if d.DatabaseID == id {
			return d.Name
		}
	}
	return ""
}

// objectID is OBJECT_ID: user tables, stored modules and system views.
func objectID(f *frame, a []value) (value, error) {
	null := sqltypes.Null(sqltypes.TInt)
	o, ok := splitName(str(a[0]))
	if !ok {
		return null, nil
	}
	want := ""
	if len(a) == 2 {
		want = strings.ToUpper(strings.TrimSpace(str(a[1])))
	}
	ex := f.ex
	if strings.HasPrefix(o.name, "#") {
		if t := ex.s.temp[strings.ToLower(o.name)]; t != nil && (o.db == "" || equalName(o.db, "tempdb")) && (want == "" || want == "U") {
			return sqltypes.NewInt(int32(t.def.ID)), nil
		}
		return null, nil
	}
	db, _, err := ex.database(o)
	if err != nil {
		return null, nil
	}
	if v := ex.systemView(db, strings.ToLower(o.schema), strings.ToLower(o.name)); v != nil && (want == "" || want == "V") {
		return sqltypes.NewInt(v.id()), nil
	}
	if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, false); engine.Failed(err) {
		return null, nil
	}
	schema := o.schema
	if schema == "" {
		schema = "dbo"
	}
	if want == "" || want == "U" {
		t, err := ex.in.LookupTable(ex.hst, ex.s.id, db, schema, o.name)
		if err != nil {
			return null, nil
		}
		if t != nil {
			return sqltypes.NewInt(int32(t.ID)), nil
		}
	}
	for _, typ := range [...]string{"V", "P", "FN", "TR"} {
		if want != "" && want != typ {
			continue
		}
		m, err := ex.module(db, schema, o.name, typ)
		if err != nil {
			return null, nil
		}
		if m != nil {
			return sqltypes.NewInt(int32(m.ID)), nil
		}
	}
	return null, nil
}

// objectByID finds schema and name of an object of the current database, or of a[1].
func (ex *exec) objectByID(a []value) (schema, name string, err error) {
	n, err := num(a[0])
	if err != nil {
		return "", "", err
	}
	db, _ := ex.in.CurrentDatabase(ex.s.id)
	if len(a) == 2 {
		d, err := num(a[1])
		if err != nil {
			return "", "", err
		}
		db = engine.DatabaseID(d)
	}
	if v := ex.systemViewByID(int32(n)); v != nil {
		return v.schema, v.name, nil
	}
	if engine.Failed(ex.in.CheckAccess(ex.hst, ex.s.id, db, false)) {
		return "", "", nil
	}
	l, err := ex.in.Tables(ex.hst, ex.s.id, db)
	if err != nil {
		return "", "", nil
	}
	for _, t := range l {
		if int64(t.ID) == n {
			return t.Schema, t.Name, nil
		}
	}
	mods, err := ex.in.Modules(ex.hst, ex.s.id, db)
	if err != nil {
		return "", "", nil
	}
	for _, m := range mods {
		if int64(m.ID) == n {
			return m.Schema, m.Name, nil
		}
	}
	return "", "", nil
}

func (ex *exec) databaseProperty(db, property string) value {
	null := sqltypes.Null(sqltypes.TVariant)
	for _, d := range ex.in.Databases(ex.hst, ex.s.id) {
		if !equalName(d.Name, db) {
			continue
		}
		text := func(s string) value { return sqltypes.NewNVarChar(s).AsVariant() }
		bit := func(b bool) value {
			if b {
				return sqltypes.NewInt(1).AsVariant()
			}
			return sqltypes.NewInt(0).AsVariant()
		}
		switch property {
		case "status":
			return text(d.StateDesc)
		case "recovery":
			return text(d.RecoveryModelDesc)
		case "updateability":
			if d.IsReadOnly || engine.Failed(ex.in.CheckAccess(ex.hst, ex.s.id, d.DatabaseID, true)) {
				return text("READ_ONLY")
			}
			return text("READ_WRITE")
		case "useraccess":
			return text(d.UserAccessDesc)
		case "collation":
			return text(d.Collation)
		case "version":
			return sqltypes.NewInt(957).AsVariant()
		case "isautoclose":
			return bit(d.IsAutoClose)
		case "isinstandby":
			return bit(d.IsInStandby)
		case "isautoshrink", "ispublished", "issubscribed", "istornpagedetectionenabled":
			return bit(false)
		}
		return null
	}
	return null
}
