package tsql

import (
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// dep is something that a bound query or expression depends on.
type dep struct {
	variable string
	typ      sqltypes.Type
	obj      objName
	table    *resolved
}

// plan is a bound query, condition or expression that a session keeps for the next run of the same
// text. Sessions do not share plans: a plan may hold the work table of a recursive query.
type plan struct {
	q    *boundQuery
	c    condFunc
	e    bexpr
	deps []dep
	db   engine.DatabaseID
	// pure is set when the result depends on nothing but the rows of system views.
	pure bool
	memo
}

// maxPlans bounds the plans of a session; when it is reached, all are dropped.
const maxPlans = 256

// planFor gives the plan of a part of the syntax tree, bound anew when anything that it depends on
// has changed. It runs inside do.
func (ex *exec) planFor(key any, bind func(b *binder, p *plan) error) (*plan, error) {
	if p, err := ex.kept(key); p != nil || err != nil {
		return p, err
	}
	return ex.bound(key, bind)
}

// kept gives the plan that the session has, nil when there is none or it is out of date.
func (ex *exec) kept(key any) (*plan, error) {
	p := ex.s.plans[key]
	if p == nil {
		return nil, nil
	}
	if db, _ := ex.in.CurrentDatabase(ex.s.id); p.db != db {
		return nil, nil
	}
	if ok, err := ex.current(p); !ok {
		return nil, err
	}
	return p, nil
}

// bound makes a plan and keeps it.
func (ex *exec) bound(key any, bind func(b *binder, p *plan) error) (*plan, error) {
	db, _ := ex.in.CurrentDatabase(ex.s.id)
	b := &binder{ex: ex}
	p := &plan{db: db}
	if err := bind(b, p); err != nil {
		return nil, err
	}
	p.deps, p.pure = b.deps, !b.impure
	if len(ex.s.plans) >= maxPlans || ex.s.plans == nil {
		ex.s.plans = make(map[any]*plan, 16)
	}
	ex.s.plans[key] = p
	return p, nil
}

// current tells whether a plan still means what its text means now. An error is one of access.
func (ex *exec) current(p *plan) (bool, error) {
	for i := range p.deps {
		d := &p.deps[i]
		if d.variable != "" {
			v := ex.vars.get(d.variable)
			switch {
			case v == nil:
				return false, nil
			case d.table != nil:
				if v.table == nil || v.table.def != d.table.mem.def {
					return false, nil
				}
			case v.table != nil || v.typ != d.typ:
				return false, nil
			}
			continue
		}
		switch r := d.table; {
		case r.view != nil:
		case r.mem != nil:
			if t := ex.s.temp[lowerASCII(r.name)]; t == nil || t.def != r.mem.def {
				return false, nil
			}
		default:
			now, err := ex.resolve(d.obj)
			if err != nil {
				return false, err
			}
			if now.db != r.db || now.table != r.table || (now.module == nil) != (r.module == nil) {
				return false, nil
			}
			if r.module != nil && (now.module.ID != r.module.ID || now.module.Text != r.module.Text) {
				return false, nil
			}
			if err := ex.allowed(now, "SELECT"); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// planOf binds a query, or takes the session's plan of it. It runs inside do.
func (ex *exec) planOf(q *query) (*plan, error) {
	if p, err := ex.kept(q); p != nil || err != nil {
		return p, err
	}
	return ex.bound(q, func(b *binder, p *plan) (err error) {
		p.q, err = b.query(nil, q, nil)
		return err
	})
}

// bindCached is the query of planOf.
func (ex *exec) bindCached(q *query) (*boundQuery, error) {
	p, err := ex.planOf(q)
	if err != nil {
		return nil, err
	}
	return p.q, nil
}
