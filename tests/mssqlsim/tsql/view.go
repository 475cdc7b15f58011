package tsql

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// sysView is a catalog or management view.
type sysView struct {
	schema, name string
	columns      []Column
	// read appends the view's rows to cells, one after the other, and tells how many columns each
	// has and how many rows there are. Columns that used does not mark are NULL, those behind the
	// last one that it marks are left out.
	read func(ex *exec, db engine.DatabaseID, used []bool, cells []value) (all []value, width, count int, err error)
	// home is the database that holds the view; 0 is every database.
	home engine.DatabaseID
	// catalog views show the same as long as engine.Metadata is equal.
	catalog bool
}

// id is the object id of the view: negative, as for the product's system objects.
func (v *sysView) id() int32 {
	h := fnv.New32a()
	h.Write([]byte(v.schema + "." + v.name))
	return -int32(h.Sum32()&0x3FFFFFFF) - 1
}

// col is a column of a view over rows of type T.
type col[T any] struct {
	name  string
	typ   sqltypes.Type
	null  bool
	since int // first major version that has it
	get   func(r *T) value
}

// from marks the first major version that has the column.
func (c col[T]) from(major int) col[T] {
	c.since = major
	return c
}

type viewMaker func(major int) *sysView

// view defines a view over rows that the engine gives.
func view[T any](schema, name string, fetch func(ex *exec, db engine.DatabaseID) ([]T, error), cols ...col[T]) viewMaker {
	return func(major int) *sysView {
		var have []col[T]
		v := &sysView{schema: schema, name: name}
		for _, c := range cols {
			if c.since > major {
				continue
			}
			have = append(have, c)
			v.columns = append(v.columns, Column{Name: c.name, Type: c.typ, Nullable: c.null})
		}
		v.read = func(ex *exec, db engine.DatabaseID, used []bool, cells []value) ([]value, int, int, error) {
			l, err := fetch(ex, db)
			if err != nil {
				return cells, 0, 0, err
			}
			n := len(have)
			for used != nil && n > 1 && !used[n-1] {
				n--
			}
			cells = slices.Grow(cells, len(l)*n)
			for i := range l {
				for j := range n {
					if used == nil || used[j] {
						cells = append(cells, have[j].get(&l[i]))
					} else {
						cells = append(cells, value{})
					}
				}
			}
			return cells, n, len(l), nil
		}
		return v
	}
}

// ofCatalog marks a view of metadata alone.
func ofCatalog(mk viewMaker) viewMaker {
	return func(major int) *sysView {
		v := mk(major)
		v.catalog = true
		return v
	}
}

func fixed[T any](name string, v value) col[T] {
	return col[T]{name: name, typ: v.Type(), null: v.IsNull(), get: func(*T) value { return v }}
}

func nullCol[T any](name string, t sqltypes.Type) col[T] { return fixed[T](name, sqltypes.Null(t)) }

func no[T any](names ...string) []col[T] {
	var l []col[T]
	for _, n := range names {
		l = append(l, fixed[T](n, sqltypes.NewBit(false)))
	}
	return l
}

func guid[T any](name string, f func(r *T) engine.GUID) col[T] {
	return col[T]{name: name, typ: sqltypes.TGUID, get: func(r *T) value { return sqltypes.NewGUID(f(r)) }}
}

func optGUID[T any](name string, f func(r *T) engine.Opt[engine.GUID]) col[T] {
	return col[T]{name: name, typ: sqltypes.TGUID, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewGUID(o.V)
		}
		return sqltypes.Null(sqltypes.TGUID)
	}}
}

// nv is an nvarchar(n) column, NULL when empty.
func nv[T any](name string, n int, f func(r *T) string) col[T] {
	t := sqltypes.TNVarChar(n)
	return col[T]{name: name, typ: t, null: true, get: func(r *T) value {
		if s := f(r); s != "" {
			return sqltypes.NewText(t, s)
		}
		return sqltypes.Null(t)
	}}
}

// desc is a _desc column: nvarchar(60).
func desc[T any](name string, f func(r *T) string) col[T] { return nv(name, 60, f) }

func sysname[T any](name string, f func(r *T) string) col[T] {
	return col[T]{name: name, typ: sqltypes.TSysName, get: func(r *T) value { return sqltypes.NewSysName(f(r)) }}
}

func vc[T any](name string, n int, f func(r *T) string) col[T] {
	t := sqltypes.TVarChar(n)
	return col[T]{name: name, typ: t, null: true, get: func(r *T) value {
		if s := f(r); s != "" {
			return sqltypes.NewText(t, s)
		}
		return sqltypes.Null(t)
	}}
}

func optNV[T any](name string, n int, f func(r *T) engine.Opt[string]) col[T] {
	t := sqltypes.TNVarChar(n)
	return col[T]{name: name, typ: t, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewText(t, o.V)
		}
		return sqltypes.Null(t)
	}}
}

func integer[T any](name string, f func(r *T) int) col[T] {
	return col[T]{name: name, typ: sqltypes.TInt, get: func(r *T) value { return sqltypes.NewInt(int32(f(r))) }}
}

func optInt[T any](name string, f func(r *T) engine.Opt[int]) col[T] {
	return col[T]{name: name, typ: sqltypes.TInt, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewInt(int32(o.V))
		}
		return sqltypes.Null(sqltypes.TInt)
	}}
}

func small[T any](name string, f func(r *T) int) col[T] {
	return col[T]{name: name, typ: sqltypes.TSmallInt, get: func(r *T) value { return sqltypes.NewSmallInt(int16(f(r))) }}
}

func tiny[T any](name string, f func(r *T) uint8) col[T] {
	return col[T]{name: name, typ: sqltypes.TTinyInt, null: true, get: func(r *T) value { return sqltypes.NewTinyInt(f(r)) }}
}

func optTiny[T any](name string, f func(r *T) engine.Opt[uint8]) col[T] {
	return col[T]{name: name, typ: sqltypes.TTinyInt, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewTinyInt(o.V)
		}
		return sqltypes.Null(sqltypes.TTinyInt)
	}}
}

func bigint[T any](name string, f func(r *T) int64) col[T] {
	return col[T]{name: name, typ: sqltypes.TBigInt, get: func(r *T) value { return sqltypes.NewBigInt(f(r)) }}
}

func optBig[T any](name string, f func(r *T) engine.Opt[int64]) col[T] {
	return col[T]{name: name, typ: sqltypes.TBigInt, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewBigInt(o.V)
		}
		return sqltypes.Null(sqltypes.TBigInt)
	}}
}

func bit[T any](name string, f func(r *T) bool) col[T] {
	return col[T]{name: name, typ: sqltypes.TBit, null: true, get: func(r *T) value { return sqltypes.NewBit(f(r)) }}
}

func optBit[T any](name string, f func(r *T) engine.Opt[bool]) col[T] {
	return col[T]{name: name, typ: sqltypes.TBit, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewBit(o.V)
		}
		return sqltypes.Null(sqltypes.TBit)
	}}
}

func datetime[T any](name string, f func(r *T) time.Time) col[T] {
	return col[T]{name: name, typ: sqltypes.TDateTime, null: true, get: func(r *T) value { return sqltypes.NewDateTime(f(r)) }}
}

func optTime[T any](name string, f func(r *T) engine.Opt[time.Time]) col[T] {
	return col[T]{name: name, typ: sqltypes.TDateTime, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewDateTime(o.V)
		}
		return sqltypes.Null(sqltypes.TDateTime)
	}}
}

func optLSN[T any](name string, f func(r *T) engine.Opt[engine.LSN]) col[T] {
	return col[T]{name: name, typ: sqltypes.TLSN, null: true, get: func(r *T) value {
		if o := f(r); o.OK {
			return sqltypes.NewLSN(uint64(o.V))
		}
		return sqltypes.Null(sqltypes.TLSN)
	}}
}

func lsn[T any](name string, f func(r *T) engine.LSN) col[T] {
	return col[T]{name: name, typ: sqltypes.TLSN, null: true, get: func(r *T) value {
		if l := f(r); l != 0 {
			return sqltypes.NewLSN(uint64(l))
		}
		return sqltypes.Null(sqltypes.TLSN)
	}}
}

func bin[T any](name string, n int, f func(r *T) []byte) col[T] {
	t := sqltypes.TVarBinary(n)
	return col[T]{name: name, typ: t, null: true, get: func(r *T) value {
		if b := f(r); b != nil {
			return sqltypes.NewBinary(b)
		}
		return sqltypes.Null(t)
	}}
}

// catalogs are the views by "schema.name", one map per major version.
type catalogs struct {
	mu sync.Mutex
	by map[int]map[string]*sysView
}

var allViews = &catalogs{by: map[int]map[string]*sysView{}}

func (c *catalogs) of(major int) map[string]*sysView {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.by[major]; m != nil {
		return m
	}
	m := map[string]*sysView{}
	for _, l := range [...][]viewMaker{groupViews(), serverViews(), securityViews(), objectViews(), informationViews(), backupViews()} {
		for _, mk := range l {
			v := mk(major)
			m[v.schema+"."+v.name] = v
		}
	}
	c.by[major] = m
	return m
}

// systemView finds a view by lower-case schema and name; nil if there is none.
func (ex *exec) systemView(db engine.DatabaseID, schema, name string) *sysView {
	if ex.s.views == nil {
		major, _ := ex.major()
		ex.s.views = allViews.of(major)
	}
	if schema == "" {
		schema = "dbo"
	}
	v := ex.s.views[schema+"."+name]
	if v == nil || v.home != 0 && v.home != db {
		return nil
	}
	return v
}

func (ex *exec) systemViewByID(id int32) *sysView {
	if id >= 0 {
		return nil
	}
	ex.systemView(0, "sys", "databases")
	for _, v := range ex.s.views {
		if v.id() == id {
			return v
		}
	}
	return nil
}
