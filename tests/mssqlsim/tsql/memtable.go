package tsql

import (
	"slices"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// store is a table that rows can be written to.
type store interface {
	table() *engine.Table
	scan() ([]engine.RowID, []engine.Row, error)
	insert(r engine.Row) error
	update(id engine.RowID, r engine.Row) error
	delete(id engine.RowID) error
	nextIdentity() int64
	setIdentity(v int64)
}

// memTable is a table variable or a #temporary table: it lives in the session, outside of
// transactions and of the log.
type memTable struct {
	def  *engine.Table
	ids  []engine.RowID
	data []engine.Row
	next engine.RowID
	keys []map[string]engine.RowID // per unique key of the definition
	last int64                     // last identity value
	used bool                      // an identity value was drawn
}

func newMemTable(t *engine.Table) *memTable {
	m := &memTable{def: t}
	m.reindex()
	return m
}

func (m *memTable) reindex() {
	m.keys = make([]map[string]engine.RowID, len(m.def.Keys))
	for i, k := range m.def.Keys {
		if k.Unique || k.Primary {
			m.keys[i] = make(map[string]engine.RowID, len(m.data))
			for j, r := range m.data {
				m.keys[i][keyText(k, r)] = m.ids[j]
			}
		}
	}
}

func keyText(k engine.Key, r engine.Row) string {
	var b []byte
	for _, c := range k.Columns {
		b = r[c].AppendKey(b)
	}
	return string(b)
}

// snapshot gives the rows as they are now; later changes do not show in it.
func (m *memTable) snapshot() []engine.Row { return slices.Clone(m.data) }

func (m *memTable) table() *engine.Table { return m.def }

func (m *memTable) scan() ([]engine.RowID, []engine.Row, error) {
	return slices.Clone(m.ids), slices.Clone(m.data), nil
}

func (m *memTable) conflict(r engine.Row, self engine.RowID) error {
	for i, k := range m.def.Keys {
		if m.keys[i] == nil {
			continue
		}
		if id, ok := m.keys[i][keyText(k, r)]; ok && id != self {
			text := ""
			for n, c := range k.Columns {
				if n > 0 {
					text += ", "
				}
				if r[c].IsNull() {
					text += "<NULL>"
				} else {
					text += r[c].Format()
				}
			}
			if k.Primary {
				return errNum(2627, 14, 1, "Violation of PRIMARY KEY constraint '%s'. Cannot insert duplicate key in object 'dbo.%s'. The duplicate key value is (%s).", k.Name, m.def.Name, text)
			}
			return errNum(2601, 14, 1, "Cannot insert duplicate key row in object 'dbo.%s' with unique index '%s'. The duplicate key value is (%s).", m.def.Name, k.Name, text)
		}
	}
	return nil
}

func (m *memTable) insert(r engine.Row) error {
	if err := m.conflict(r, 0); err != nil {
		return err
	}
	m.next++
	m.ids = append(m.ids, m.next)
	m.data = append(m.data, r)
	for i, k := range m.def.Keys {
		if m.keys[i] != nil {
			m.keys[i][keyText(k, r)] = m.next
		}
	}
	return nil
}

func (m *memTable) find(id engine.RowID) int {
	i, ok := slices.BinarySearch(m.ids, id)
	if !ok {
		return -1
	}
	return i
}

func (m *memTable) update(id engine.RowID, r engine.Row) error {
	i := m.find(id)
	if i < 0 {
		return nil
	}
	if err := m.conflict(r, id); err != nil {
		return err
	}
	for n, k := range m.def.Keys {
		if m.keys[n] != nil {
			delete(m.keys[n], keyText(k, m.data[i]))
			m.keys[n][keyText(k, r)] = id
		}
	}
	m.data[i] = r
	return nil
}

func (m *memTable) delete(id engine.RowID) error {
	i := m.find(id)
	if i < 0 {
		return nil
	}
	for n, k := range m.def.Keys {
		if m.keys[n] != nil {
			delete(m.keys[n], keyText(k, m.data[i]))
		}
	}
	m.ids = slices.Delete(m.ids, i, i+1)
	m.data = slices.Delete(m.data, i, i+1)
	return nil
}

func (m *memTable) nextIdentity() int64 {
	c := identityColumn(m.def)
	if c < 0 {
		return 0
	}
	if !m.used {
		m.used, m.last = true, m.def.Columns[c].Seed
	} else {
		m.last += m.def.Columns[c].Step
	}
	return m.last
}

func (m *memTable) setIdentity(v int64) { m.last, m.used = v, true }

// copyFrom restores a state saved by clone.
func (m *memTable) copyFrom(o *memTable) {
	m.ids, m.data, m.next = o.ids, o.data, o.next
	m.reindex()
}

func (m *memTable) clone() *memTable {
	return &memTable{def: m.def, ids: slices.Clone(m.ids), data: slices.Clone(m.data), next: m.next}
}

func identityColumn(t *engine.Table) int {
	for i := range t.Columns {
		if t.Columns[i].Identity {
			return i
		}
	}
	return -1
}

// engineTable is a user table of a database.
type engineTable struct {
	ex  *exec
	db  engine.DatabaseID
	def *engine.Table
}

func (e *engineTable) table() *engine.Table { return e.def }

func (e *engineTable) scan() ([]engine.RowID, []engine.Row, error) {
	seq, err := e.ex.in.Scan(e.ex.hst, e.ex.s.id, e.db, e.def.ID)
	if err != nil {
		return nil, nil, err
	}
	var ids []engine.RowID
	var rows []engine.Row
	for id, r := range seq {
		ids = append(ids, id)
		rows = append(rows, r)
	}
	return ids, rows, nil
}

func (e *engineTable) insert(r engine.Row) error {
	_, err := e.ex.in.Insert(e.ex.hst, e.ex.s.id, e.db, e.def.ID, r)
	return err
}

func (e *engineTable) update(id engine.RowID, r engine.Row) error {
	return e.ex.in.Update(e.ex.hst, e.ex.s.id, e.db, e.def.ID, id, r)
}

func (e *engineTable) delete(id engine.RowID) error {
	return e.ex.in.Delete(e.ex.hst, e.ex.s.id, e.db, e.def.ID, id)
}

func (e *engineTable) nextIdentity() int64 {
	return e.ex.in.NextIdentity(e.ex.s.id, e.db, e.def.ID)
}

func (e *engineTable) setIdentity(v int64) { e.ex.in.SetIdentity(e.ex.s.id, e.db, e.def.ID, v) }

var _, _ store = (*memTable)(nil), (*engineTable)(nil)

// wholeNumber is the value of an identity column as an integer.
func wholeNumber(v value) int64 {
	w, err := sqltypes.Cast(v, sqltypes.TBigInt, 0)
	if err != nil {
		return 0
	}
	return w.Int64()
}
