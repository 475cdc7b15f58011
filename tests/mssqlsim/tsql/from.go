package tsql

import (
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// fromNode is a row source or a join of two.
type fromNode struct {
	// leaf
	src     int
	scan    func(f *frame) ([]engine.Row, error)
	lateral bool // depends on the rows to its left: scanned for each of them
	// join
	kind joinKind
	l, r *fromNode
	on   condFunc
	// hashOrd >= 0: the ON condition holds r.column[hashOrd] = hashKey, and r is a leaf.
	hashOrd int
	hashKey evalFunc
	slots   []int // sources below this node
}

// hashFrom is the number of rows from which a lookup table pays.
const hashFrom = 12

// run calls emit for every row that the node gives, with the sources' slots of f set.
func (n *fromNode) run(f *frame, emit func() error) error {
	if n.l == nil {
		rows, err := n.rows(f)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f.rows[n.src] = r
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	}
	switch n.kind {
	case joinInner, joinCross, applyCross:
		return n.l.run(f, func() error {
			return n.inner(f, emit)
		})
	case joinLeft, applyOuter:
		return n.l.run(f, func() error {
			matched := false
			if err := n.inner(f, func() error {
				matched = true
				return emit()
			}); err != nil {
				return err
			}
			if matched {
				return nil
			}
			n.r.clear(f)
			return emit()
		})
	}
	return n.full(f, emit)
}

// inner runs the right side for the present left row.
func (n *fromNode) inner(f *frame, emit func() error) error {
	check := func() error {
		if err := f.ex.step(); err != nil {
			return err
		}
		if n.on != nil {
			ok, err := n.on(f)
			if err != nil || ok != isTrue {
				return err
			}
		}
		return emit()
	}
	if n.hashOrd >= 0 {
		rows, err := n.r.rows(f)
		if err != nil {
			return err
		}
		if len(rows) >= hashFrom {
			k, err := n.hashKey(f)
			if err != nil || k.IsNull() {
				return err
			}
			for _, i := range n.r.index(f, rows, n.hashOrd)[k.Key()] {
				f.rows[n.r.src] = rows[i]
				if err := check(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return n.r.run(f, check)
}

// index is the lookup table of a leaf by one column, made once per query run.
func (n *fromNode) index(f *frame, rows []engine.Row, ord int) map[string][]int32 {
	if f.hash == nil {
		f.hash = make([]map[string][]int32, len(f.rows))
	}
	m := f.hash[n.src]
	if m == nil {
		m = make(map[string][]int32, len(rows))
		for i, r := range rows {
			if !r[ord].IsNull() {
				k := r[ord].Key()
				m[k] = append(m[k], int32(i))
			}
		}
		f.hash[n.src] = m
	}
	return m
}

func (n *fromNode) full(f *frame, emit func() error) error {
	// materialise the right side, remember which rows found a partner
	var right [][]engine.Row
	slots := n.r.sources()
	if err := n.r.run(f, func() error {
		t := make([]engine.Row, len(slots))
		for i, s := range slots {
			t[i] = f.rows[s]
		}
		right = append(right, t)
		return nil
	}); err != nil {
		return err
	}
	hit := make([]bool, len(right))
	if err := n.l.run(f, func() error {
		matched := false
		for i, t := range right {
			if err := f.ex.step(); err != nil {
				return err
			}
			for k, s := range slots {
				f.rows[s] = t[k]
			}
			ok, err := n.on(f)
			if err != nil {
				return err
			}
			if ok != isTrue {
				continue
			}
			hit[i], matched = true, true
			if err := emit(); err != nil {
				return err
			}
		}
		if matched {
			return nil
		}
		n.r.clear(f)
		return emit()
	}); err != nil {
		return err
	}
	n.l.clear(f)
	for i, t := range right {
		if hit[i] {
			continue
		}
		for k, s := range slots {
			f.rows[s] = t[k]
		}
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func (n *fromNode) sources() []int {
	if n.l == nil {
		return []int{n.src}
	}
	return append(n.l.sources(), n.r.sources()...)
}

// clear sets the node's sources to all NULL.
func (n *fromNode) clear(f *frame) {
	if n.l == nil {
		f.rows[n.src] = nil
		return
	}
	n.l.clear(f)
	n.r.clear(f)
}

// rows reads a leaf, once per query run unless it is lateral.
func (n *fromNode) rows(f *frame) ([]engine.Row, error) {
	if n.lateral {
		return n.scan(f)
	}
	if !f.found[n.src] {
		rows, err := n.scan(f)
		if err != nil {
			return nil, err
		}
		f.scans[n.src], f.found[n.src] = rows, true
	}
	return f.scans[n.src], nil
}

// addSource makes a leaf for a new source of the scope.
func (sc *scope) addSource(src *source, scan func(f *frame) ([]engine.Row, error)) (*fromNode, error) {
	for _, o := range sc.srcs {
		if o.alias == "" || !equalName(o.alias, src.alias) {
			continue
		}
		if o.name != "" && src.name != "" && equalName(o.alias, o.name) && equalName(src.alias, src.name) && !equalName(o.schema, src.schema) {
			continue
		}
		if o.name != "" && src.name != "" && equalName(o.name, src.name) {
			return nil, errBind(0, 1013, 16, 1, "The objects \"%s\" and \"%s\" in the FROM clause have the same exposed names. Use correlation names to distinguish them.", o.alias, src.alias)
		}
		return nil, errBind(0, 1011, 16, 1, "The correlation name '%s' is specified multiple times in a FROM clause.", src.alias)
	}
	src.scope = sc
	src.used = make([]bool, len(src.cols))
	sc.srcs = append(sc.srcs, src)
	return &fromNode{src: len(sc.srcs) - 1, scan: scan, hashOrd: -1}, nil
}

// tableRef binds one element of FROM.
func (b *binder) tableRef(sc *scope, ref tableRef) (*fromNode, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer func() { b.depth-- }()
	switch ref := ref.(type) {
	case *tableName:
		return b.tableName(sc, ref)
	case *tableVar:
		return b.tableVariable(sc, ref)
	case *derivedTable:
		return b.derived(sc, ref, sc.parent, false)
	case *tableFunc:
		return b.tableFunction(sc, ref)
	case *joinRef:
		return b.join(sc, ref)
	}
	return nil, errBind(0, 102, 15, 1, "Incorrect syntax near 'FROM'.")
}

func (b *binder) join(sc *scope, j *joinRef) (*fromNode, error) {
	l, err := b.tableRef(sc, j.l)
	if err != nil {
		return nil, err
	}
	first := len(sc.srcs)
	var r *fromNode
	if d, ok := j.r.(*derivedTable); ok && (j.kind == applyCross || j.kind == applyOuter) {
		r, err = b.derived(sc, d, sc, true)
	} else {
		r, err = b.tableRef(sc, j.r)
		if err == nil && (j.kind == applyCross || j.kind == applyOuter) && r.l == nil {
			r.lateral = true
		}
	}
	if err != nil {
		return nil, err
	}
	n := &fromNode{kind: j.kind, l: l, r: r, hashOrd: -1}
	if j.on != nil {
		sc.noAgg, sc.noWin = true, true
		n.on, err = b.cond(sc, j.on)
		sc.noAgg, sc.noWin = false, false
		if err != nil {
			return nil, err
		}
	}
	if j.kind == joinRight {
		n.kind, n.l, n.r = joinLeft, r, l
		return n, nil
	}
	if r.l == nil && !r.lateral && (j.kind == joinInner || j.kind == joinLeft) {
		b.hashable(sc, n, j.on, first)
	}
	return n, nil
}

// hashable looks for right.column = expression over earlier sources among the conjuncts of ON.
func (b *binder) hashable(sc *scope, n *fromNode, on expr, first int) {
	switch x := on.(type) {
	case *logicExpr:
		if x.and {
			b.hashable(sc, n, x.l, first)
			if n.hashOrd < 0 {
				b.hashable(sc, n, x.r, first)
			}
		}
	case *cmpExpr:
		if x.op != "=" || x.quant != "" || caseSensitive(x.l, x.r) {
			return
		}
		for _, p := range [2][2]expr{{x.l, x.r}, {x.r, x.l}} {
			rc, ok1 := p[0].(*colExpr)
			lc, ok2 := p[1].(*colExpr)
			if !ok1 || !ok2 {
				continue
			}
			r, err1 := b.expr(sc, rc)
			l, err2 := b.expr(sc, lc)
			if err1 != nil || err2 != nil || r.depth != 0 || l.depth != 0 || r.src < first || l.src >= first {
				continue
			}
			if sameKeys(l.typ, r.typ) {
				n.hashOrd, n.hashKey = r.col-1, l.eval
				return
			}
		}
	}
}

// sameKeys tells whether equal values of the two types have equal keys.
func sameKeys(a, c sqltypes.Type) bool {
	switch {
	case a.IsString() && c.IsString():
		return true
	case a.IsInteger() && c.IsInteger(), a.ID == sqltypes.UniqueIdentifier && c.ID == a.ID:
		return true
	}
	return false
}

// derived binds a derived table; lateral ones see the sources to their left.
func (b *binder) derived(sc *scope, d *derivedTable, parent *scope, lateral bool) (*fromNode, error) {
	if d.q.order != nil && d.q.offset == nil {
		if s, ok := d.q.body.(*selectBody); !ok || s.top == nil {
			return nil, errOrderInSub(d.line)
		}
	}
	var bq *boundQuery
	var err error
	if v, ok := d.q.body.(*valuesBody); ok {
		p := parent
		bq, err = b.values(p, v, sc.ctes)
	} else {
		bq, err = b.query(parent, d.q, sc.ctes)
	}
	if err != nil {
		return nil, err
	}
	return b.queryLeaf(sc, bq, d.alias, d.cols, d.line, lateral)
}

// queryLeaf makes a row source of a bound query.
func (b *binder) queryLeaf(sc *scope, bq *boundQuery, alias string, names []string, line int, lateral bool) (*fromNode, error) {
	if bq.assigns {
		return nil, errBind(line, 141, 15, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.")
	}
	cols := append([]Column(nil), bq.cols...)
	if names != nil {
		if len(names) > len(cols) {
			return nil, errBind(line, 8159, 16, 1, "'%s' has fewer columns than were specified in the column list.", alias)
		}
		if len(names) < len(cols) {
			return nil, errBind(line, 8158, 16, 1, "'%s' has more columns than were specified in the column list.", alias)
		}
		for i := range cols {
			cols[i].Name = names[i]
		}
	}
	for i := range cols {
		if cols[i].Name == "" {
			return nil, errBind(line, 8155, 16, 2, "No column name was specified for column %d of '%s'.", i+1, alias)
		}
		for j := range cols[:i] {
			if equalName(cols[i].Name, cols[j].Name) {
				return nil, errBind(line, 8156, 16, 1, "The column '%s' was specified multiple times for '%s'.", cols[i].Name, alias)
			}
		}
	}
	n, err := sc.addSource(&source{alias: alias, cols: cols}, func(f *frame) ([]engine.Row, error) {
		if lateral {
			return bq.all(f)
		}
		if f.up == nil {
			return bq.all(&frame{ex: f.ex})
		}
		return bq.all(f.up)
	})
	if err == nil {
		n.lateral = lateral
	}
	return n, err
}
