package engine

import (
	"slices"
	"sort"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// Principal is a user or role of a database, or a login or server role.
type Principal struct {
	PrincipalRow
	Certificate int    // certificate id that a login or user is bound to, 0 none
	Salt        []byte `json:",omitempty"`
	Hash        []byte `json:",omitempty"`
}

// Permission is one granted or denied right.
type Permission struct {
	Class   SecurableClass
	Object  string // group id, endpoint or certificate name, object id; "" for the class itself
	Name    string
	Grantee PrincipalID
	Grantor PrincipalID
	Verb    GrantVerb // Grant or Deny
	Option  bool      // WITH GRANT OPTION
}

func (p *Permission) same(q *Permission) bool {
	return p.Class == q.Class && p.Object == q.Object && p.Name == q.Name && p.Grantee == q.Grantee
}

// Image is the content of a database as of an LSN. It is immutable.
type Image struct {
	LSN           LSN
	Tables        []*TableImage
	Modules       []*Module
	Principals    []*Principal
	Permissions   []*Permission
	Members       []RoleMemberRow
	NextObject    ObjectID
	NextPrincipal PrincipalID
	Forks         []Fork
	Bytes         int64
}

// TableImage is one table in an image.
type TableImage struct {
	Def      *Table
	IDs      []RowID
	Rows     []Row
	NextRow  RowID
	Identity int64
}

type tableRow struct {
	id  RowID
	row Row // nil: deleted
}

// tableData is the committed content of a table. Rows are ordered by id.
type tableData struct {
	def      *Table
	rows     []tableRow
	dead     int
	nextRow  RowID
	identity int64              // last value drawn
	keys     []map[string]RowID // per unique key of def, nil for others
}

// content is the committed content of a database.
type content struct {
	tables        []*tableData // by id
	modules       []*Module
	principals    []*Principal
	permissions   []*Permission
	members       []RoleMemberRow
	nextObject    ObjectID
	nextPrincipal PrincipalID
	forks         []Fork
	bytes         int64
}

func newTableData(def *Table) *tableData {
	t := &tableData{def: def, nextRow: 1}
	for _, c := range def.Columns {
		if c.Identity {
			t.identity = c.Seed - c.Step
		}
	}
	t.buildKeys()
	return t
}

func (t *tableData) buildKeys() {
	t.keys = make([]map[string]RowID, len(t.def.Keys))
	for i, k := range t.def.Keys {
		if !k.Unique && !k.Primary {
			continue
		}
		t.keys[i] = make(map[string]RowID, len(t.rows))
		for _, r := range t.rows {
			if r.row != nil {
				t.keys[i][keyOf(k, r.row)] = r.id
			}
		}
	}
}

func keyOf(k Key, r Row) string {
	var buf [64]byte
	b := buf[:0]
	for _, c := range k.Columns {
		b = r[c].AppendKey(b)
	}
	return string(b)
}

func (t *tableData) index(id RowID) (int, bool) {
	i := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].id >= id })
	return i, i < len(t.rows) && t.rows[i].id == id && t.rows[i].row != nil
}

func (t *tableData) get(id RowID) Row {
	if i, ok := t.index(id); ok {
		return t.rows[i].row
	}
	return nil
}

func (t *tableData) insert(id RowID, r Row) {
	if n := len(t.rows); n == 0 || t.rows[n-1].id < id {
		t.rows = append(t.rows, tableRow{id, r})
	} else {
		i := sort.Search(n, func(i int) bool { return t.rows[i].id >= id })
		if i < n && t.rows[i].id == id {
			if t.rows[i].row == nil {
				t.dead--
			}
			t.rows[i].row = r
		} else {
			t.rows = slices.Insert(t.rows, i, tableRow{id, r})
		}
	}
	if id >= t.nextRow {
		t.nextRow = id + 1
	}
	for i := range t.keys {
		if t.keys[i] != nil {
			t.keys[i][keyOf(t.def.Keys[i], r)] = id
		}
	}
}

func (t *tableData) remove(id RowID) {
	i, ok := t.index(id)
	if !ok {
		return
	}
	t.dropKeys(id, t.rows[i].row)
	t.rows[i].row = nil
	t.dead++
	if t.dead > 32 && t.dead > len(t.rows)/2 {
		t.rows = slices.DeleteFunc(t.rows, func(r tableRow) bool { return r.row == nil })
		t.dead = 0
	}
}

func (t *tableData) dropKeys(id RowID, r Row) {
	for i := range t.keys {
		if t.keys[i] == nil {
			continue
		}
		k := keyOf(t.def.Keys[i], r)
		if t.keys[i][k] == id {
			delete(t.keys[i], k)
		}
	}
}

func (t *tableData) update(id RowID, r Row) {
	i, ok := t.index(id)
	if !ok {
		return
	}
	t.dropKeys(id, t.rows[i].row)
	t.rows[i].row = r
	for k := range t.keys {
		if t.keys[k] != nil {
			t.keys[k][keyOf(t.def.Keys[k], r)] = id
		}
	}
}

func (c *content) find(id ObjectID) (int, *tableData) {
	i := sort.Search(len(c.tables), func(i int) bool { return c.tables[i].def.ID >= id })
	if i < len(c.tables) && c.tables[i].def.ID == id {
		return i, c.tables[i]
	}
	return i, nil
}

func (c *content) table(id ObjectID) *tableData {
	_, t := c.find(id)
	return t
}

// apply redoes one record.
func (c *content) apply(r *LogRecord) {
	c.bytes += int64(r.Bytes)
	for i := range r.Changes {
		c.change(&r.Changes[i])
	}
}

func (c *content) change(ch *Change) {
	switch ch.Op {
	case OpInsert:
		if t := c.table(ch.Object); t != nil {
			t.insert(ch.Row, ch.Values)
			if ch.Identity != 0 {
				t.identity = ch.Identity
			}
		}
	case OpUpdate:
		if t := c.table(ch.Object); t != nil {
			t.update(ch.Row, ch.Values)
		}
	case OpDelete:
		if t := c.table(ch.Object); t != nil {
			t.remove(ch.Row)
		}
	case OpTruncate:
		if i, t := c.find(ch.Object); t != nil {
			c.tables[i] = newTableData(t.def)
			c.tables[i].nextRow = t.nextRow
		}
	case OpCreateTable:
		i, t := c.find(ch.Table.ID)
		if t == nil {
			c.tables = slices.Insert(c.tables, i, newTableData(ch.Table))
		}
		c.nextObject = max(c.nextObject, ch.Table.ID+1)
	case OpAlterTable: // the rows follow as inserts, in their new shape
		if i, t := c.find(ch.Table.ID); t != nil {
			n := newTableData(ch.Table)
			n.nextRow, n.identity = t.nextRow, t.identity
			c.tables[i] = n
		}
	case OpDropTable:
		if i, t := c.find(ch.Object); t != nil {
			c.tables = slices.Delete(c.tables, i, i+1)
		}
	case OpPutModule:
		c.nextObject = max(c.nextObject, ch.Module.ID+1)
		for i, m := range c.modules {
			if m.ID == ch.Module.ID {
				c.modules[i] = ch.Module
				return
			}
		}
		c.modules = append(c.modules, ch.Module)
	case OpDropModule:
		c.modules = slices.DeleteFunc(c.modules, func(m *Module) bool { return m.ID == ch.Object })
	case OpPutPrincipal:
		c.nextPrincipal = max(c.nextPrincipal, ch.Principal.ID+1)
		for i, p := range c.principals {
			if p.ID == ch.Principal.ID {
				c.principals[i] = ch.Principal
				return
			}
		}
		c.principals = append(c.principals, ch.Principal)
	case OpDropPrincipal:
		id := PrincipalID(ch.Object)
		c.principals = slices.DeleteFunc(c.principals, func(p *Principal) bool { return p.ID == id })
		c.permissions = slices.DeleteFunc(c.permissions, func(p *Permission) bool { return p.Grantee == id })
		c.members = slices.DeleteFunc(c.members, func(m RoleMemberRow) bool { return m.MemberID == id || m.RoleID == id })
	case OpPutPermission:
		for i, p := range c.permissions {
			if p.same(ch.Permission) {
				c.permissions[i] = ch.Permission
				return
			}
		}
		c.permissions = append(c.permissions, ch.Permission)
	case OpDropPermission:
		c.permissions = slices.DeleteFunc(c.permissions, func(p *Permission) bool { return p.same(ch.Permission) })
	case OpAddMember:
		if !slices.Contains(c.members, *ch.Member) {
			c.members = append(c.members, *ch.Member)
		}
	case OpDropMember:
		c.members = slices.DeleteFunc(c.members, func(m RoleMemberRow) bool { return m == *ch.Member })
	case OpFork:
		c.forks = append(c.forks, *ch.Fork)
	}
}

// image freezes the content.
func (c *content) image(l LSN) *Image {
	im := &Image{LSN: l, Modules: slices.Clone(c.modules), Principals: slices.Clone(c.principals),
		Permissions: slices.Clone(c.permissions), Members: slices.Clone(c.members),
		NextObject: c.nextObject, NextPrincipal: c.nextPrincipal, Forks: slices.Clone(c.forks), Bytes: c.bytes}
	for _, t := range c.tables {
		ti := &TableImage{Def: t.def, NextRow: t.nextRow, Identity: t.identity}
		for _, r := range t.rows {
			if r.row != nil {
				ti.IDs = append(ti.IDs, r.id)
				ti.Rows = append(ti.Rows, r.row)
			}
		}
		im.Tables = append(im.Tables, ti)
	}
	return im
}

// contentOf thaws an image.
func contentOf(im *Image) *content {
	c := &content{modules: slices.Clone(im.Modules), principals: slices.Clone(im.Principals),
		permissions: slices.Clone(im.Permissions), members: slices.Clone(im.Members),
		nextObject: im.NextObject, nextPrincipal: im.NextPrincipal, forks: slices.Clone(im.Forks), bytes: im.Bytes}
	for _, ti := range im.Tables {
		t := &tableData{def: ti.Def, nextRow: ti.NextRow, identity: ti.Identity, rows: make([]tableRow, len(ti.Rows))}
		for i := range ti.Rows {
			t.rows[i] = tableRow{ti.IDs[i], ti.Rows[i]}
		}
		t.buildKeys()
		c.tables = append(c.tables, t)
	}
	return c
}

func equalName(a, b string) bool { return sqltypes.EqualText(a, b) }
