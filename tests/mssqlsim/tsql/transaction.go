package tsql

import (
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// started notes that a transaction is open.
func (s *Session) started() {
	s.tranCount = 1
	s.tranID++
}

func (s *Session) ended(rolledBack bool) {
	s.tranCount, s.rolled, s.doomed = 0, rolledBack, false
}

func (ex *exec) rollbackAll() {
	_ = ex.do(func() error {
		if ex.in.InTransaction(ex.s.id) {
			ex.in.Rollback(ex.hst, ex.s.id)
		}
		return nil
	})
	ex.s.ended(true)
}

func (ex *exec) transaction(s *tranStmt) error {
	name := s.name
	if strings.HasPrefix(name, "@") {
		v := ex.vars.get(strings.ToLower(name))
		if v == nil {
			return errBind(0, 137, 15, 2, "Must declare the scalar variable \"%s\".", name)
		}
		name = v.val.Text()
	}
	switch s.op {
	case "BEGIN":
		if ex.s.tranCount > 0 {
			ex.s.tranCount++
			return nil
		}
		if err := ex.do(func() error { ex.in.Begin(ex.hst, ex.s.id); return nil }); err != nil {
			return err
		}
		ex.s.started()
		return nil
	case "COMMIT":
		switch {
		case ex.s.tranCount == 0:
			return errNum(3902, 16, 1, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")
		case ex.s.doomed:
			return errDoomed()
		case ex.s.tranCount > 1:
			ex.s.tranCount--
			return nil
		}
		ex.s.ended(false)
		return ex.commit()
	case "SAVE":
		if ex.s.tranCount == 0 {
			return errNum(628, 16, 0, "Cannot issue SAVE TRANSACTION when there is no active transaction.")
		}
		return ex.do(func() error { ex.in.Savepoint(ex.s.id, name); return nil })
	}
	if ex.s.tranCount == 0 {
		return errNum(3903, 16, 1, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.")
	}
	if name != "" && !ex.s.doomed {
		found := false
		if err := ex.do(func() error { found = ex.in.RollbackTo(ex.s.id, name); return nil }); err != nil {
			return err
		}
		if found {
			return nil
		}
	}
	ex.rollbackAll()
	return nil
}

// setOption runs SET of a session option.
func (ex *exec) setOption(s *setOptStmt) error {
	on := s.value == "ON"
	o := &ex.s.opts
	switch s.names[0] {
	case "IDENTITY_INSERT":
		return ex.setIdentityInsert(s)
	case "TRANSACTION ISOLATION LEVEL":
		o.isolation = s.value
		return nil
	case "LOCK_TIMEOUT":
		n, err := ex.intOption(s.value)
		if err != nil {
			return err
		}
		o.lockTimeout = time.Duration(n) * time.Millisecond
		if n < 0 {
			o.lockTimeout = -1
		}
		return nil
	case "ROWCOUNT":
		n, err := ex.intOption(s.value)
		o.rowCount = max(n, 0)
		return err
	case "TEXTSIZE":
		n, err := ex.intOption(s.value)
		o.textSize = n
		return err
	case "LANGUAGE":
		o.language = strings.Trim(s.value, "'")
		return nil
	}
	for _, n := range s.names {
		switch n {
		case "NOCOUNT":
			o.nocount = on
		case "XACT_ABORT":
			o.xactAbort = on
		case "IMPLICIT_TRANSACTIONS":
			o.implicitTxn = on
		case "QUOTED_IDENTIFIER":
			o.quotedIdent = on
		case "NOEXEC", "PARSEONLY", "FMTONLY", "SHOWPLAN_ALL", "SHOWPLAN_TEXT", "SHOWPLAN_XML":
			if on {
				return errNum(102, 15, 1, "Incorrect syntax near '%s'.", n)
			}
		}
	}
	return nil
}

func (ex *exec) intOption(text string) (int64, error) {
	if strings.HasPrefix(text, "@") {
		if v := ex.vars.get(strings.ToLower(text)); v != nil {
			w, err := sqltypes.Cast(v.val, sqltypes.TBigInt, 0)
			return w.Int64(), err
		}
		return 0, errBind(0, 137, 15, 2, "Must declare the scalar variable \"%s\".", text)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, " ", ""), 10, 32)
	if err != nil {
		return 0, errNum(102, 15, 1, "Incorrect syntax near '%s'.", text)
	}
	return n, nil
}

func (ex *exec) setIdentityInsert(s *setOptStmt) error {
	return ex.do(func() error {
		r, err := ex.resolve(objName{db: s.names[1], schema: s.names[2], name: s.names[3]})
		if err != nil {
			return errNum(1088, 16, 11, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", s.names[3])
		}
		if r.table == nil && r.mem == nil || r.table != nil && identityColumn(r.table) < 0 {
			return errNum(8106, 16, 1, "Table '%s' does not have the identity property. Cannot perform SET operation.", s.names[3])
		}
		if s.value != "ON" {
			ex.s.opts.identityIns = ""
			return nil
		}
		if old := ex.s.opts.identityIns; old != "" && old != tableKey(r) {
			return errNum(8107, 16, 1, "IDENTITY_INSERT is already ON for table '%s'. Cannot perform SET operation for table '%s'.", strings.ReplaceAll(old, "\x00", "."), s.names[3])
		}
		ex.s.opts.identityIns = tableKey(r)
		return nil
	})
}
