package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// checker enforces CHECK and FOREIGN KEY constraints for one changing statement: values of new
// rows at once, references when the statement has made all its changes.
type checker struct {
	ex     *exec
	verb   string // INSERT, UPDATE, DELETE
	r      *resolved
	t      *engine.Table
	checks []boundCheck
	added  []engine.Row
	gone   []engine.Row
}

type boundCheck struct {
	name string
	cond condFunc
}

// checker binds the constraints of a table. It runs inside do.
func (ex *exec) checker(verb string, r *resolved, t *engine.Table) (*checker, error) {
	c := &checker{ex: ex, verb: verb, r: r, t: t}
	for _, k := range t.Checks {
		b, perr := ex.s.cache.parse("IF " + k.Text + " RETURN")
		if perr != nil {
			return nil, perr
		}
		sc := &scope{noAgg: true, noWin: true}
		if _, err := sc.addSource(&source{alias: t.Name, cols: tableColumns(t)}, nil); err != nil {
			return nil, err
		}
		cond, err := (&binder{ex: ex}).cond(sc, b.body[0].s.(*ifStmt).cond)
		if err != nil {
			// the line is that of the statement, not of the stored text
			se := asStmtError(err)
			se.line = 0
			return nil, se
		}
		c.checks = append(c.checks, boundCheck{k.Name, cond})
	}
	return c, nil
}

func (c *checker) conflict(kind, constraint, table string, t *engine.Table, cols []int) error {
	column := ""
	if len(cols) == 1 {
		column = ", column '" + t.Columns[cols[0]].Name + "'"
	}
	return errNum(547, 16, 0, "The %s statement conflicted with the %s constraint \"%s\". The conflict occurred in database \"%s\", table \"%s\"%s.", c.verb, kind, constraint, c.r.dbName, table, column)
}

// row checks the values of a new row; old is the row that it replaces, nil for a new one.
func (c *checker) row(row, old engine.Row) error {
	f := &frame{ex: c.ex, rows: []engine.Row{row}}
	for _, k := range c.checks {
		ok, err := k.cond(f)
		if err != nil {
			return err
		}
		if ok == isFalse {
			return c.conflict("CHECK", k.name, c.t.Schema+"."+c.t.Name, c.t, nil)
		}
	}
	if len(c.t.Foreign) > 0 {
		c.added = append(c.added, row)
	}
	if old != nil {
		c.gone = append(c.gone, old)
	}
	return nil
}

// removed notes a deleted row.
func (c *checker) removed(old engine.Row) { c.gone = append(c.gone, old) }

// done checks the references of the statement's rows.
func (c *checker) done() error {
	if c.r.table == nil {
		return nil
	}
	for _, fk := range c.t.Foreign {
		if err := c.parents(fk); err != nil {
			return err
		}
	}
	if len(c.gone) == 0 {
		return nil
	}
	tables, err := c.ex.in.Tables(c.ex.hst, c.ex.s.id, c.r.db)
	if err != nil {
		return err
	}
	for _, child := range tables {
		for _, fk := range child.Foreign {
			if equalName(fk.RefTable, c.t.Name) && equalName(fk.RefSchema, c.t.Schema) {
				if err := c.children(child, fk); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rowSet is the keys of all rows of a table by some columns.
func (c *checker) rowSet(t *engine.Table, cols []int) (map[string]bool, error) {
	_, rows, err := (&engineTable{ex: c.ex, db: c.r.db, def: t}).scan()
	if err != nil {
		return nil, err
	}
	set := make(map[string]bool, len(rows))
	for _, r := range rows {
		if k, ok := partKey(r, cols); ok {
			set[k] = true
		}
	}
	return set, nil
}

// partKey is the key of some columns of a row; ok is false when one of them is NULL.
func partKey(r engine.Row, cols []int) (string, bool) {
	var b []byte
	for _, i := range cols {
		if r[i].IsNull() {
			return "", false
		}
		b = r[i].AppendKey(b)
	}
	return string(b), true
}

func (c *checker) parents(fk engine.ForeignKey) error {
	if len(c.added) == 0 {
		return nil
	}
	parent, err := c.ex.in.LookupTable(c.ex.hst, c.ex.s.id, c.r.db, fk.RefSchema, fk.RefTable)
	if err != nil || parent == nil {
		return err
	}
	have, err := c.rowSet(parent, fk.RefColumns)
	if err != nil {
		return err
	}
	for _, r := range c.added {
		if k, ok := partKey(r, fk.Columns); ok && !have[k] {
			return c.conflict("FOREIGN KEY", fk.Name, parent.Schema+"."+parent.Name, parent, fk.RefColumns)
		}
	}
	return nil
}

func (c *checker) children(child *engine.Table, fk engine.ForeignKey) error {
	still, err := c.rowSet(c.t, fk.RefColumns)
	if err != nil {
		return err
	}
	used, err := c.rowSet(child, fk.Columns)
	if err != nil {
		return err
	}
	for _, r := range c.gone {
		if k, ok := partKey(r, fk.RefColumns); ok && used[k] && !still[k] {
			return c.conflict("REFERENCE", fk.Name, child.Schema+"."+child.Name, child, fk.Columns)
		}
	}
	return nil
}

// addForeignKey resolves a FOREIGN KEY of a table that is being made or altered. It runs inside do.
func (ex *exec) addForeignKey(db engine.DatabaseID, t *engine.Table, d *constraintDef) error {
	fk := engine.ForeignKey{Name: d.name, RefSchema: "dbo", RefTable: d.ref.name}
	if d.ref.schema != "" {
		fk.RefSchema = d.ref.schema
	}
	if fk.Name == "" {
		fk.Name = constraintName("FK", t.Name, strings.Join(d.cols, ","))
	}
	parent := t
	if !equalName(fk.RefTable, t.Name) || !equalName(fk.RefSchema, t.Schema) {
		p, err := ex.in.LookupTable(ex.hst, ex.s.id, db, fk.RefSchema, fk.RefTable)
		if err != nil {
			return err
		}
		if p == nil {
			return errNum(1767, 16, 0, "Foreign key '%s' references invalid table '%s'.", fk.Name, d.ref.String())
		}
		parent = p
	}
	for _, n := range d.cols {
		at := findColumn(t, n)
		if at < 0 {
			return errNum(1769, 16, 1, "Foreign key '%s' references invalid column '%s' in referencing table '%s'.", fk.Name, n, t.Name)
		}
		fk.Columns = append(fk.Columns, at)
	}
	for _, n := range d.refCols {
		at := findColumn(parent, n)
		if at < 0 {
			return errNum(1770, 16, 0, "Foreign key '%s' references invalid column '%s' in referenced table '%s'.", fk.Name, n, parent.Name)
		}
		fk.RefColumns = append(fk.RefColumns, at)
	}
	key := false
	for _, k := range parent.Keys {
		if d.refCols == nil && k.Primary {
			fk.RefColumns = k.Columns
		}
		key = key || (k.Primary || k.Unique) && len(k.Columns) == len(fk.RefColumns) && sameSet(k.Columns, fk.RefColumns)
	}
	if !key {
		return errNum(1776, 16, 0, "There are no primary or candidate keys in the referenced table '%s' that match the referencing column list in the foreign key '%s'.", parent.Name, fk.Name)
	}
	if len(fk.Columns) != len(fk.RefColumns) {
		return errNum(8139, 16, 0, "Number of referencing columns in foreign key differs from number of referenced columns, table '%s'.", t.Name)
	}
	t.Foreign = append(t.Foreign, fk)
	return nil
}

func sameSet(a, b []int) bool {
	for _, x := range a {
		found := false
		for _, y := range b {
			found = found || x == y
		}
		if !found {
			return false
		}
	}
	return true
}

// referenced tells whether another table has a foreign key to t. It runs inside do.
func (ex *exec) referenced(db engine.DatabaseID, t *engine.Table) (bool, error) {
	tables, err := ex.in.Tables(ex.hst, ex.s.id, db)
	if err != nil {
		return false, err
	}
	for _, o := range tables {
		if o.ID == t.ID {
			continue
		}
		for _, fk := range o.Foreign {
			if equalName(fk.RefTable, t.Name) && equalName(fk.RefSchema, t.Schema) {
				return true, nil
			}
		}
	}
	return false, nil
}
