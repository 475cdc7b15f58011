package tsql

import (
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

type schemaRow struct {
	id   int
	name string
}

// schemas are the schemas of every database; others cannot be made.
func schemas() []schemaRow {
	return []schemaRow{{1, "dbo"}, {2, "guest"}, {3, "INFORMATION_SCHEMA"}, {4, "sys"}}
}

func schemaID(name string) int {
	for _, s := range schemas() {
		if equalName(s.name, name) {
			return s.id
		}
	}
	return 1
}

type typeRow struct {
	name            string
	system, user    int
	length          int
	precision       int
	scale           int
	collation, null bool
}

// systemTypes are the rows of sys.types that the simulator knows.
func systemTypes() []typeRow {
	return []typeRow{
		{"uniqueidentifier", 36, 36, 16, 0, 0, false, true},
		{"date", 40, 40, 3, 10, 0, false, true},
		{"time", 41, 41, 5, 16, 7, false, true},
		{"datetime2", 42, 42, 8, 27, 7, false, true},
		{"datetimeoffset", 43, 43, 10, 34, 7, false, true},
		{"tinyint", 48, 48, 1, 3, 0, false, true},
		{"smallint", 52, 52, 2, 5, 0, false, true},
		{"int", 56, 56, 4, 10, 0, false, true},
		{"smalldatetime", 58, 58, 4, 16, 0, false, true},
		{"real", 59, 59, 4, 24, 0, false, true},
		{"datetime", 61, 61, 8, 23, 3, false, true},
		{"float", 62, 62, 8, 53, 0, false, true},
		{"sql_variant", 98, 98, 8016, 0, 0, false, true},
		{"bit", 104, 104, 1, 1, 0, false, true},
		{"decimal", 106, 106, 17, 38, 38, false, true},
		{"numeric", 108, 108, 17, 38, 38, false, true},
		{"bigint", 127, 127, 8, 19, 0, false, true},
		{"varbinary", 165, 165, 8000, 0, 0, false, true},
		{"varchar", 167, 167, 8000, 0, 0, true, true},
		{"binary", 173, 173, 8000, 0, 0, false, true},
		{"char", 175, 175, 8000, 0, 0, true, true},
		{"nvarchar", 231, 231, 8000, 0, 0, true, true},
		{"nchar", 239, 239, 8000, 0, 0, true, true},
		{"xml", 241, 241, -1, 0, 0, false, true},
		{"sysname", 231, 256, 256, 0, 0, true, false},
	}
}

func typeOf(t sqltypes.Type) typeRow {
	for _, r := range systemTypes() {
		if r.name == t.ID.Name() {
			return r
		}
	}
	return typeRow{name: "int", system: 56, user: 56, length: 4, precision: 10}
}

// maxLength is max_length of sys.columns: bytes, -1 for the (max) types.
func maxLength(t sqltypes.Type) int {
	switch {
	case t.Len == sqltypes.Max:
		return -1
	case t.IsUnicode():
		return 2 * int(t.Len)
	case t.IsString(), t.IsBinary():
		return int(t.Len)
	case t.IsDecimal():
		switch {
		case t.Prec <= 9:
			return 5
		case t.Prec <= 19:
			return 9
		case t.Prec <= 28:
			return 13
		}
		return 17
	}
	return typeOf(t).length
}

func precisionOf(t sqltypes.Type) (int, int) {
	if t.IsDecimal() {
		return int(t.Prec), int(t.Scale)
	}
	r := typeOf(t)
	if t.ID == sqltypes.DateTime2 || t.ID == sqltypes.Time || t.ID == sqltypes.DateTimeOffset {
		return r.precision, int(t.Scale)
	}
	return r.precision, r.scale
}

// objectRow is a row of sys.objects.
type objectRow struct {
	name, schema  string
	id            int
	parent        int
	typ, typeDesc string
	shipped       bool
	text          string
}

// columnRow is a row of sys.columns.
type columnRow struct {
	object         int
	schema, table  string
	base           bool
	name           string
	id             int
	typ            sqltypes.Type
	nullable       bool
	identity       bool
	seed, step     int64
	deflt, dfltNam string
	dfltID         int
}

// indexRow is a row of sys.indexes.
type indexRow struct {
	object  int
	table   string
	name    string
	id      int
	key     *engine.Key
	columns []engine.Column
}

func keyObject(table engine.ObjectID, n int) int { return int(table)*1000 + n + 1 }

// objects lists user tables, modules and constraints of a database.
func (ex *exec) objects(db engine.DatabaseID) ([]objectRow, error) {
	tables, err := ex.visibleTables(db)
	if err != nil {
		return nil, err
	}
	var l []objectRow
	for _, t := range tables {
		l = append(l, objectRow{name: t.Name, schema: t.Schema, id: int(t.ID), typ: "U ", typeDesc: "USER_TABLE"})
		for n, k := range t.Keys {
			switch {
			case k.Primary:
				l = append(l, objectRow{name: k.Name, schema: t.Schema, id: keyObject(t.ID, n), parent: int(t.ID), typ: "PK", typeDesc: "PRIMARY_KEY_CONSTRAINT"})
			case k.Unique:
				l = append(l, objectRow{name: k.Name, schema: t.Schema, id: keyObject(t.ID, n), parent: int(t.ID), typ: "UQ", typeDesc: "UNIQUE_CONSTRAINT"})
			}
		}
		for n, k := range t.Checks {
			l = append(l, objectRow{name: k.Name, schema: t.Schema, id: keyObject(t.ID, 200+n), parent: int(t.ID), typ: "C ", typeDesc: "CHECK_CONSTRAINT"})
		}
		for n, k := range t.Foreign {
			l = append(l, objectRow{name: k.Name, schema: t.Schema, id: keyObject(t.ID, 300+n), parent: int(t.ID), typ: "F ", typeDesc: "FOREIGN_KEY_CONSTRAINT"})
		}
		for i, c := range t.Columns {
			if c.Default != "" {
				l = append(l, objectRow{name: c.DefaultName, schema: t.Schema, id: keyObject(t.ID, 500+i), parent: int(t.ID), typ: "D ", typeDesc: "DEFAULT_CONSTRAINT"})
			}
		}
	}
	mods, err := ex.in.Modules(ex.hst, ex.s.id, db)
	if err != nil {
		return nil, err
	}
	for _, m := range mods {
		o := objectRow{name: m.Name, schema: m.Schema, id: int(m.ID), typ: (m.Type + " ")[:2], text: m.Text}
		switch strings.TrimSpace(m.Type) {
		case "V":
			o.typeDesc = "VIEW"
		case "P":
			o.typeDesc = "SQL_STORED_PROCEDURE"
		case "FN":
			o.typeDesc = "SQL_SCALAR_FUNCTION"
		case "TR":
			o.typeDesc = "SQL_TRIGGER"
		}
		if ex.in.DatabasePermitted(ex.s.id, db, m.ID, "VIEW DEFINITION") || ex.in.DatabasePermitted(ex.s.id, db, m.ID, "EXECUTE") {
			l = append(l, o)
		}
	}
	return l, nil
}

// visibleTables are the tables whose metadata the login may see; none when the database is not
// accessible.
func (ex *exec) visibleTables(db engine.DatabaseID) ([]*engine.Table, error) {
	if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, false); engine.Failed(err) {
		return nil, err
	}
	tables, err := ex.in.Tables(ex.hst, ex.s.id, db)
	if err != nil {
		return nil, err
	}
	var l []*engine.Table
	for _, t := range tables {
		for _, p := range [...]string{"SELECT", "VIEW DEFINITION", "INSERT", "ALTER"} {
			if ex.in.DatabasePermitted(ex.s.id, db, t.ID, p) {
				l = append(l, t)
				break
			}
		}
	}
	return l, nil
}

func (ex *exec) columns(db engine.DatabaseID) ([]columnRow, error) {
	tables, err := ex.visibleTables(db)
	if err != nil {
		return nil, err
	}
	var l []columnRow
	for _, t := range tables {
		for i, c := range t.Columns {
			r := columnRow{object: int(t.ID), schema: t.Schema, table: t.Name, base: true, name: c.Name, id: i + 1, typ: c.Type, nullable: c.Nullable, identity: c.Identity, seed: c.Seed, step: c.Step, deflt: c.Default, dfltNam: c.DefaultName}
			if c.Default != "" {
				r.dfltID = keyObject(t.ID, 500+i)
			}
			l = append(l, r)
		}
	}
	return l, nil
}

// systemColumns are the columns of the catalog views themselves (sys.all_columns).
func (ex *exec) systemColumns() []columnRow {
	var l []columnRow
	for _, v := range ex.sortedViews() {
		for i, c := range v.columns {
			l = append(l, columnRow{object: int(v.id()), schema: v.schema, table: v.name, name: c.Name, id: i + 1, typ: c.Type, nullable: c.Nullable})
		}
	}
	return l
}

func (ex *exec) sortedViews() []*sysView {
	ex.systemView(0, "sys", "databases")
	l := make([]*sysView, 0, len(ex.s.views))
	for _, v := range ex.s.views {
		l = append(l, v)
	}
	sortBy(l, func(a, b *sysView) int { return strings.Compare(a.schema+"."+a.name, b.schema+"."+b.name) })
	return l
}

func (ex *exec) indexes(db engine.DatabaseID) ([]indexRow, error) {
	tables, err := ex.visibleTables(db)
	if err != nil {
		return nil, err
	}
	var l []indexRow
	for _, t := range tables {
		heap := true
		next := 2
		for i := range t.Keys {
			if t.Keys[i].Clustered && heap {
				heap = false
			}
		}
		if heap {
			l = append(l, indexRow{object: int(t.ID), table: t.Name})
		}
		seen := false
		for i := range t.Keys {
			r := indexRow{object: int(t.ID), table: t.Name, name: t.Keys[i].Name, key: &t.Keys[i], columns: t.Columns}
			if t.Keys[i].Clustered && !seen {
				r.id, seen = 1, true
			} else {
				r.id = next
				next++
			}
			l = append(l, r)
		}
	}
	return l, nil
}

func objectCols() []col[objectRow] {
	char2 := sqltypes.Type{ID: sqltypes.Char, Len: 2}
	epoch := time.Date(2022, 10, 8, 6, 31, 57, 0, time.UTC)
	return []col[objectRow]{
		sysname("name", func(r *objectRow) string { return r.name }),
		integer("object_id", func(r *objectRow) int { return r.id }),
		nullCol[objectRow]("principal_id", sqltypes.TInt),
		integer("schema_id", func(r *objectRow) int { return schemaID(r.schema) }),
		integer("parent_object_id", func(r *objectRow) int { return r.parent }),
		{name: "type", typ: char2, null: true, get: func(r *objectRow) value { return sqltypes.NewText(char2, r.typ) }},
		desc("type_desc", func(r *objectRow) string { return r.typeDesc }),
		fixed[objectRow]("create_date", sqltypes.NewDateTime(epoch)),
		fixed[objectRow]("modify_date", sqltypes.NewDateTime(epoch)),
		bit("is_ms_shipped", func(r *objectRow) bool { return r.shipped }),
		fixed[objectRow]("is_published", sqltypes.NewBit(false)),
		fixed[objectRow]("is_schema_published", sqltypes.NewBit(false)),
	}
}

func columnCols() []col[columnRow] {
	return []col[columnRow]{
		integer("object_id", func(r *columnRow) int { return r.object }),
		sysname("name", func(r *columnRow) string { return r.name }),
		integer("column_id", func(r *columnRow) int { return r.id }),
		tiny("system_type_id", func(r *columnRow) uint8 { return uint8(typeOf(r.typ).system) }),
		integer("user_type_id", func(r *columnRow) int { return typeOf(r.typ).user }),
		small("max_length", func(r *columnRow) int { return maxLength(r.typ) }),
		tiny("precision", func(r *columnRow) uint8 { p, _ := precisionOf(r.typ); return uint8(p) }),
		tiny("scale", func(r *columnRow) uint8 { _, s := precisionOf(r.typ); return uint8(s) }),
		nv("collation_name", 128, func(r *columnRow) string {
			if r.typ.IsString() && r.typ.ID != sqltypes.XML {
				return "SQL_Latin1_General_CP1_CI_AS"
			}
			return ""
		}),
		bit("is_nullable", func(r *columnRow) bool { return r.nullable }),
		fixed[columnRow]("is_ansi_padded", sqltypes.NewBit(true)),
		fixed[columnRow]("is_rowguidcol", sqltypes.NewBit(false)),
		bit("is_identity", func(r *columnRow) bool { return r.identity }),
		fixed[columnRow]("is_computed", sqltypes.NewBit(false)),
		integer("default_object_id", func(r *columnRow) int { return r.dfltID }),
	}
}

func (ex *exec) objectsOf(db engine.DatabaseID, typ string) ([]objectRow, error) {
	l, err := ex.objects(db)
	var out []objectRow
	for _, o := range l {
		if strings.TrimSpace(o.typ) == typ {
			out = append(out, o)
		}
	}
	return out, err
}

// objectViews are the views of the objects of a database.
func objectViews() []viewMaker {
	type icol struct {
		index indexRow
		n     int
	}
	byType := func(typ string) func(ex *exec, db engine.DatabaseID) ([]objectRow, error) {
		return func(ex *exec, db engine.DatabaseID) ([]objectRow, error) { return ex.objectsOf(db, typ) }
	}
	all := func(ex *exec, db engine.DatabaseID) ([]objectRow, error) {
		l, err := ex.objects(db)
		if err != nil {
			return nil, err
		}
		for _, v := range ex.sortedViews() {
			l = append(l, objectRow{name: v.name, schema: v.schema, id: int(v.id()), typ: "V ", typeDesc: "VIEW", shipped: true})
		}
		return l, nil
	}
	return []viewMaker{
		view("sys", "schemas", func(*exec, engine.DatabaseID) ([]schemaRow, error) { return schemas(), nil },
			sysname("name", func(r *schemaRow) string { return r.name }),
			integer("schema_id", func(r *schemaRow) int { return r.id }),
			integer("principal_id", func(r *schemaRow) int { return r.id }),
		),
		view("sys", "objects", func(ex *exec, db engine.DatabaseID) ([]objectRow, error) { return ex.objects(db) }, objectCols()...),
		view("sys", "all_objects", all, objectCols()...),
		view("sys", "tables", byType("U"), append(objectCols(),
			fixed[objectRow]("lob_data_space_id", sqltypes.NewInt(0)),
			integer("max_column_id_used", func(*objectRow) int { return 0 }),
			fixed[objectRow]("is_memory_optimized", sqltypes.NewBit(false)),
			fixed[objectRow]("temporal_type", sqltypes.NewTinyInt(0)),
		)...),
		view("sys", "views", byType("V"), objectCols()...),
		view("sys", "procedures", byType("P"), objectCols()...),
		view("sys", "key_constraints", func(ex *exec, db engine.DatabaseID) ([]objectRow, error) {
			pk, err := ex.objectsOf(db, "PK")
			if err != nil {
				return nil, err
			}
			uq, err := ex.objectsOf(db, "UQ")
			return append(pk, uq...), err
		}, objectCols()...),
		view("sys", "sql_modules", func(ex *exec, db engine.DatabaseID) ([]objectRow, error) {
			l, err := ex.objects(db)
			var out []objectRow
			for _, o := range l {
				if o.text != "" {
					out = append(out, o)
				}
			}
			return out, err
		},
			integer("object_id", func(r *objectRow) int { return r.id }),
			nv("definition", sqltypes.Max, func(r *objectRow) string { return r.text }),
			fixed[objectRow]("uses_ansi_nulls", sqltypes.NewBit(true)),
			fixed[objectRow]("uses_quoted_identifier", sqltypes.NewBit(true)),
		),
		view("sys", "columns", func(ex *exec, db engine.DatabaseID) ([]columnRow, error) { return ex.columns(db) }, columnCols()...),
		view("sys", "all_columns", func(ex *exec, db engine.DatabaseID) ([]columnRow, error) {
			l, err := ex.columns(db)
			return append(l, ex.systemColumns()...), err
		}, columnCols()...),
		view("sys", "identity_columns", func(ex *exec, db engine.DatabaseID) ([]columnRow, error) {
			l, err := ex.columns(db)
			var out []columnRow
			for _, c := range l {
				if c.identity {
					out = append(out, c)
				}
			}
			return out, err
		}, append(columnCols(), variantInt("seed_value", func(r *columnRow) int64 { return r.seed }), variantInt("increment_value", func(r *columnRow) int64 { return r.step }))...),
		view("sys", "default_constraints", func(ex *exec, db engine.DatabaseID) ([]columnRow, error) {
			l, err := ex.columns(db)
			var out []columnRow
			for _, c := range l {
				if c.deflt != "" {
					out = append(out, c)
				}
			}
			return out, err
		},
			sysname("name", func(r *columnRow) string { return r.dfltNam }),
			integer("object_id", func(r *columnRow) int { return r.dfltID }),
			integer("parent_object_id", func(r *columnRow) int { return r.object }),
			integer("parent_column_id", func(r *columnRow) int { return r.id }),
			nv("definition", sqltypes.Max, func(r *columnRow) string { return "(" + r.deflt + ")" }),
		),
		view("sys", "types", func(*exec, engine.DatabaseID) ([]typeRow, error) { return systemTypes(), nil },
			sysname("name", func(r *typeRow) string { return r.name }),
			tiny("system_type_id", func(r *typeRow) uint8 { return uint8(r.system) }),
			integer("user_type_id", func(r *typeRow) int { return r.user }),
			fixed[typeRow]("schema_id", sqltypes.NewInt(4)),
			nullCol[typeRow]("principal_id", sqltypes.TInt),
			small("max_length", func(r *typeRow) int { return r.length }),
			tiny("precision", func(r *typeRow) uint8 { return uint8(r.precision) }),
			tiny("scale", func(r *typeRow) uint8 { return uint8(r.scale) }),
			nv("collation_name", 128, func(r *typeRow) string {
				if r.collation {
					return "SQL_Latin1_General_CP1_CI_AS"
				}
				return ""
			}),
			bit("is_nullable", func(r *typeRow) bool { return r.null }),
			fixed[typeRow]("is_user_defined", sqltypes.NewBit(false)),
			fixed[typeRow]("is_table_type", sqltypes.NewBit(false)),
		),
		view("sys", "indexes", func(ex *exec, db engine.DatabaseID) ([]indexRow, error) { return ex.indexes(db) },
			integer("object_id", func(r *indexRow) int { return r.object }),
			nv("name", 128, func(r *indexRow) string { return r.name }),
			integer("index_id", func(r *indexRow) int { return r.id }),
			tiny("type", func(r *indexRow) uint8 {
				switch r.id {
				case 0:
					return 0
				case 1:
					return 1
				}
				return 2
			}),
			desc("type_desc", func(r *indexRow) string {
				switch r.id {
				case 0:
					return "HEAP"
				case 1:
					return "CLUSTERED"
				}
				return "NONCLUSTERED"
			}),
			bit("is_unique", func(r *indexRow) bool { return r.key != nil && (r.key.Unique || r.key.Primary) }),
			bit("is_primary_key", func(r *indexRow) bool { return r.key != nil && r.key.Primary }),
			fixed[indexRow]("is_disabled", sqltypes.NewBit(false)),
		),
		view("sys", "index_columns", func(ex *exec, db engine.DatabaseID) ([]icol, error) {
			l, err := ex.indexes(db)
			var out []icol
			for _, x := range l {
				if x.key == nil {
					continue
				}
				for n := range x.key.Columns {
					out = append(out, icol{x, n})
				}
			}
			return out, err
		},
			integer("object_id", func(r *icol) int { return r.index.object }),
			integer("index_id", func(r *icol) int { return r.index.id }),
			integer("index_column_id", func(r *icol) int { return r.n + 1 }),
			integer("column_id", func(r *icol) int { return r.index.key.Columns[r.n] + 1 }),
			tiny("key_ordinal", func(r *icol) uint8 { return uint8(r.n + 1) }),
			fixed[icol]("is_descending_key", sqltypes.NewBit(false)),
			fixed[icol]("is_included_column", sqltypes.NewBit(false)),
		),
	}
}

// informationViews are the views of INFORMATION_SCHEMA.
func informationViews() []viewMaker {
	type table struct{ db, schema, name, kind string }
	type column struct {
		db string
		columnRow
	}
	return []viewMaker{
		view("information_schema", "tables", func(ex *exec, db engine.DatabaseID) ([]table, error) {
			l, err := ex.objects(db)
			name := ex.databaseName(db)
			var out []table
			for _, o := range l {
				switch strings.TrimSpace(o.typ) {
				case "U":
					out = append(out, table{name, o.schema, o.name, "BASE TABLE"})
				case "V":
					out = append(out, table{name, o.schema, o.name, "VIEW"})
				}
			}
			return out, err
		},
			nv("TABLE_CATALOG", 128, func(r *table) string { return r.db }),
			nv("TABLE_SCHEMA", 128, func(r *table) string { return r.schema }),
			sysname("TABLE_NAME", func(r *table) string { return r.name }),
			vc("TABLE_TYPE", 10, func(r *table) string { return r.kind }),
		),
		view("information_schema", "columns", func(ex *exec, db engine.DatabaseID) ([]column, error) {
			l, err := ex.columns(db)
			name := ex.databaseName(db)
			var out []column
			for _, c := range l {
				out = append(out, column{name, c})
			}
			return out, err
		},
			nv("TABLE_CATALOG", 128, func(r *column) string { return r.db }),
			nv("TABLE_SCHEMA", 128, func(r *column) string { return r.schema }),
			sysname("TABLE_NAME", func(r *column) string { return r.table }),
			nv("COLUMN_NAME", 128, func(r *column) string { return r.name }),
			integer("ORDINAL_POSITION", func(r *column) int { return r.id }),
			nv("COLUMN_DEFAULT", 4000, func(r *column) string {
				if r.deflt == "" {
					return ""
				}
				return "(" + r.deflt + ")"
			}),
			vc("IS_NULLABLE", 3, func(r *column) string {
				if r.nullable {
					return "YES"
				}
				return "NO"
			}),
			nv("DATA_TYPE", 128, func(r *column) string {
				if r.typ.ID == sqltypes.SysName {
					return "nvarchar"
				}
				return r.typ.ID.Name()
			}),
			optInt("CHARACTER_MAXIMUM_LENGTH", func(r *column) engine.Opt[int] {
				return engine.Opt[int]{V: int(r.typ.Len), OK: r.typ.IsString() || r.typ.IsBinary()}
			}),
			optTiny("NUMERIC_PRECISION", func(r *column) engine.Opt[uint8] {
				p, _ := precisionOf(r.typ)
				return engine.Opt[uint8]{V: uint8(p), OK: r.typ.IsNumber() && r.typ.ID != sqltypes.Bit}
			}),
			optInt("NUMERIC_SCALE", func(r *column) engine.Opt[int] {
				_, s := precisionOf(r.typ)
				return engine.Opt[int]{V: s, OK: r.typ.IsNumber() && r.typ.ID != sqltypes.Bit && !r.typ.IsFloat()}
			}),
		),
	}
}
