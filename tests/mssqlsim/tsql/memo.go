package tsql

import (
	"slices"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// memo is the newest run of a plan: what it has read of system views, in order, and its answer.
// A query over system views alone that finds the same rows again has the same answer; monitoring
// asks the same of a quiet server all the time.
type memo struct {
	reads []viewRead
	count int // of reads of this run; those behind are of earlier ones, and keep their memory
	known bool
	timed bool // the clock was read: the answer is of its instant alone
	rows  []engine.Row
	n     int64
	// metadata is the version that catalog views show now, if metadataOK.
	metadata   engine.Metadata
	metadataOK bool
}

// viewRead is what was read of one view. Other views of the same run see the same instant.
type viewRead struct {
	view     *sysView
	db       engine.DatabaseID
	used     []bool
	metadata engine.Metadata // at that time
	cells    []value         // rows lie in it, one after the other
	spare    []value
	rows     []engine.Row
}

// answer runs the query of a plan: its rows, and their number, which those that only set variables
// have too. The rows must not be changed. It runs inside do.
func (ex *exec) answer(p *plan) ([]engine.Row, int64, error) {
	m := &p.memo
	ex.reads = m
	defer func() { ex.reads = nil }()
	m.metadata, m.metadataOK = ex.in.Metadata(ex.hst, ex.s.id)
	pure := p.pure && p.q.into == nil && !p.q.assigns
	if pure && m.known {
		same, err := m.same(ex)
		if err != nil {
			return nil, 0, err
		}
		if same {
			return m.rows, m.n, nil
		}
	} else {
		m.count = 0
	}
	m.known, m.timed = false, false
	var rows []engine.Row
	n := int64(0)
	if err := p.q.each(&frame{ex: ex}, func(r engine.Row) error {
		n++
		if r != nil {
			rows = append(rows, r)
		}
		return nil
	}); err != nil {
		return nil, 0, err
	}
	if pure && !m.timed {
		m.rows, m.n, m.known = rows, n, true
	}
	return rows, n, nil
}

// timely tells that the running query has read the clock.
func (ex *exec) timely() {
	if ex.reads != nil {
		ex.reads.timed = true
	}
}

// same tells whether all that the last run read is as it was. The query would read the same views
// in the same order up to the first one that differs, so an error here is the query's own; what
// has been read is kept for the run that follows.
func (m *memo) same(ex *exec) (bool, error) {
	for i := range m.reads[:m.count] {
		r := &m.reads[i]
		if m.current(r) {
			continue
		}
		cells, width, count, err := r.view.read(ex, r.db, r.used, r.spare[:0])
		r.spare = cells
		if err != nil {
			m.known = false
			return false, err
		}
		r.metadata = m.metadata
		if count == len(r.rows) && slices.Equal(cells, r.cells) {
			continue
		}
		r.cells, r.spare = cells, r.cells
		r.slice(width, count)
		m.count = i + 1
		return false, nil
	}
	return true, nil
}

// current tells that a view need not be read again.
func (m *memo) current(r *viewRead) bool {
	return r.view.catalog && m.metadataOK && r.metadata == m.metadata
}

// slice makes the rows of the cells.
func (r *viewRead) slice(width, count int) {
	r.rows = r.rows[:0]
	for i := range count {
		r.rows = append(r.rows, r.cells[i*width:(i+1)*width:(i+1)*width])
	}
}

// viewRows reads a system view, once in each run of a SELECT: what it shows does not change while
// the instance is held. The rows must not be changed, and are valid until the run ends.
func (ex *exec) viewRows(v *sysView, db engine.DatabaseID, used []bool) ([]engine.Row, error) {
	m := ex.reads
	if m == nil {
		m = &memo{}
	}
	at := 0
	for at < len(m.reads) {
		if r := &m.reads[at]; r.view == v && r.db == db && &r.used[0] == &used[0] {
			break
		}
		at++
	}
	if at < m.count {
		return m.reads[at].rows, nil
	}
	if at == len(m.reads) {
		m.reads = append(m.reads, viewRead{view: v, db: db, used: used})
	}
	r := &m.reads[m.count]
	*r, m.reads[at] = m.reads[at], *r
	if !m.current(r) {
		cells, width, count, err := v.read(ex, db, used, r.cells[:0])
		r.cells, r.metadata = cells, engine.Metadata{}
		if err != nil {
			return nil, err
		}
		r.metadata = m.metadata
		r.slice(width, count)
	}
	m.count++
	return r.rows, nil
}
