package tsql

import (
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

type sysProc func(ex *exec, args []arg) (callEnd, signal, error)

// plain adapts a procedure without outputs.
func plain(f func(ex *exec, args []arg) error) sysProc {
	return func(ex *exec, args []arg) (callEnd, signal, error) {
		err := f(ex, args)
		end := callEnd{}
		if err != nil {
			end.status = 1
		}
		return end, sigNone, err
	}
}

// systemProcedure finds a system procedure; nil if there is none of that name.
func systemProcedure(schema, name string) sysProc {
	if schema == "mssqlsim" {
		if name == "fault" {
			return plain((*exec).fault)
		}
		return nil
	}
	switch name {
	case "sp_executesql":
		return (*exec).spExecuteSQL
	case "sp_set_session_context":
		return plain((*exec).spSetSessionContext)
	case "sp_server_diagnostics":
		return plain((*exec).spServerDiagnostics)
	case "sp_readerrorlog", "xp_readerrorlog":
		return plain((*exec).spReadErrorLog)
	case "sp_cycle_errorlog":
		return plain(func(ex *exec, _ []arg) error {
			return ex.do(func() error { return ex.in.CycleErrorLog(ex.hst, ex.s.id) })
		})
	case "sp_addsrvrolemember", "sp_dropsrvrolemember":
		return plain(func(ex *exec, args []arg) error {
			a, err := named(name, args, "@loginame", "@rolename")
			if err != nil {
				return err
			}
			return ex.do(func() error {
				return ex.infos(ex.in.AlterRole(ex.hst, ex.s.id, true, a.text(1), a.text(0), name == "sp_addsrvrolemember"))
			})
		})
	case "sp_addrolemember", "sp_droprolemember":
		return plain(func(ex *exec, args []arg) error {
			a, err := named(name, args, "@rolename", "@membername")
			if err != nil {
				return err
			}
			return ex.ddl(func() error {
				return ex.infos(ex.in.AlterRole(ex.hst, ex.s.id, false, a.text(0), a.text(1), name == "sp_addrolemember"))
			})
		})
	case "sp_addserver", "sp_dropserver":
		return plain(func(ex *exec, args []arg) error { return ex.spServer(name, args) })
	case "sp_configure":
		return plain((*exec).spConfigure)
	case "sp_who", "sp_who2":
		return plain((*exec).spWho)
	}
	return nil
}

// procArgs are the arguments of a system procedure by position of its parameters.
type procArgs []arg

// named orders arguments by parameter; missing ones are NULL.
func named(proc string, args []arg, params ...string) (procArgs, error) {
	out := make(procArgs, len(params))
	for i := range out {
		out[i].deflt = true
	}
	for i, a := range args {
		at := -1
		if a.name == "" {
			at = i
		} else {
			for j, p := range params {
				if p == a.name {
					at = j
				}
			}
			if at < 0 {
				return nil, errNum(8145, 16, 1, "%s is not a parameter for procedure %s.", a.name, proc)
			}
		}
		if at >= len(params) {
			return nil, errNum(8144, 16, 2, "Procedure or function %s has too many arguments specified.", proc)
		}
		out[at] = a
	}
	return out, nil
}

func (a procArgs) text(i int) string {
	v, err := sqltypes.Cast(a[i].val, sqltypes.TNVarCharMax, 0)
	if err != nil {
		return ""
	}
	return v.Text()
}

func (a procArgs) int(i int, def int64) (int64, error) {
	if a[i].deflt || a[i].val.IsNull() {
		return def, nil
	}
	v, err := convertParam(a[i].val, sqltypes.TBigInt)
	return v.Int64(), err
}

func (ex *exec) spExecuteSQL(args []arg) (callEnd, signal, error) {
	end := callEnd{outputs: map[string]value{}}
	if len(args) == 0 {
		return end, sigNone, errNum(201, 16, 10, "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied.")
	}
	stmt, rest := args[0], args[1:]
	if !stmt.val.Type().IsUnicode() && !stmt.val.IsNull() {
		return end, sigNone, errNum(214, 16, 2, "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'.")
	}
	vars := varScope{}
	if len(rest) > 0 {
		if !rest[0].val.Type().IsUnicode() && !rest[0].val.IsNull() {
			return end, sigNone, errNum(214, 16, 3, "Procedure expects parameter '@params' of type 'ntext/nchar/nvarchar'.")
		}
		params, err := declaration(rest[0].val.Text())
		if err != nil {
			se := *asStmtError(err)
			se.abort = false
			return end, sigNone, &se
		}
		vals := rest[1:]
		if vars, err = ex.bindArgs("sp_executesql", params, vals); err != nil {
			return end, sigNone, err
		}
		for i := range vals {
			if vals[i].name == "" && i < len(params) {
				vals[i].name = params[i].name
			}
		}
	}
	sig, err := ex.dynamic(stmt.val.Text(), vars, "")
	for i := range args {
		if v := vars[args[i].name]; v != nil && args[i].output != "" && v.table == nil {
			end.outputs[args[i].name] = v.val
		}
	}
	return end, sig, err
}

func (ex *exec) spSetSessionContext(args []arg) error {
	a, err := named("sp_set_session_context", args, "@key", "@value", "@read_only")
	if err != nil {
		return err
	}
	switch key := a.text(0); {
	case a[0].deflt || a[0].val.IsNull() || key == "":
		return errNum(225, 16, 1, "The parameters supplied for the procedure \"sp_set_session_context\" are not valid.")
	case sqltypes.TextLen(key) > 128:
		return errNum(15666, 16, 1, "Cannot set key '%s' in the session context. The size of the key cannot exceed 256 bytes.", key)
	}
	if a[1].deflt {
		return errNum(201, 16, 4, "Procedure or function 'sp_set_session_context' expects parameter '@value', which was not supplied.")
	}
	ro, err := a.int(2, 0)
	if err != nil {
		return err
	}
	return ex.do(func() error {
		return ex.infos(ex.in.SetSessionContext(ex.hst, ex.s.id, a.text(0), a.text(1), a[1].val.IsNull(), ro != 0))
	})
}

// diagnosticsTime is how long one round of sp_server_diagnostics takes (FG 6).
const diagnosticsTime = 5 * time.Second

func (ex *exec) spServerDiagnostics(args []arg) error {
	a, err := named("sp_server_diagnostics", args, "@repeat_interval")
	if err != nil {
		return err
	}
	interval, err := a.int(0, 0)
	if err != nil {
		return err
	}
	if interval < 0 || interval > 0 && interval < 5 {
		return errNum(15600, 15, 1, "An invalid parameter or option was specified for procedure 'sp_server_diagnostics'.")
	}
	cols := []Column{
		{Name: "create_time", Type: sqltypes.TDateTime}, {Name: "component_type", Type: sqltypes.TSysName},
		{Name: "component_name", Type: sqltypes.TSysName}, {Name: "state", Type: sqltypes.TInt},
		{Name: "state_desc", Type: sqltypes.TSysName}, {Name: "data", Type: sqltypes.TVarCharMax, Nullable: true},
	}
	// the right is checked before the wait
	if err := ex.do(func() error {
		_, err := ex.in.Diagnostics(ex.hst, ex.s.id)
		return err
	}); err != nil {
		return err
	}
	pause := diagnosticsTime
	for {
		if err := ex.sleep(pause); err != nil {
			return err
		}
		var rows []engine.Row
		if err := ex.do(func() error {
			l, err := ex.in.Diagnostics(ex.hst, ex.s.id)
			for _, d := range l {
				rows = append(rows, engine.Row{
					sqltypes.NewDateTime(d.CreateTime), sqltypes.NewSysName(d.ComponentType), sqltypes.NewSysName(d.ComponentName),
					sqltypes.NewInt(int32(d.State)), sqltypes.NewSysName(d.StateDesc), sqltypes.NewText(sqltypes.TVarCharMax, d.Data),
				})
			}
			return err
		}); err != nil {
			return err
		}
		ex.rowsOut(cols, rows)
		ex.done(cmdSelect, int64(len(rows)), true)
		if interval == 0 {
			return nil
		}
		pause = time.Duration(interval) * time.Second
	}
}

func (ex *exec) spReadErrorLog(args []arg) error {
	a, err := named("sp_readerrorlog", args, "@p1", "@p2", "@p3", "@p4", "@p5", "@p6", "@p7")
	if err != nil {
		return err
	}
	log, err := a.int(0, 0)
	if err != nil {
		return err
	}
	typ, err := a.int(1, 1)
	if err != nil {
		return err
	}
	cols := []Column{{Name: "LogDate", Type: sqltypes.TDateTime, Nullable: true}, {Name: "ProcessInfo", Type: sqltypes.TNVarChar(12), Nullable: true}, {Name: "Text", Type: sqltypes.TNVarChar(3999), Nullable: true}}
	if typ != 1 {
		// no agent log
		ex.rowsOut(cols, nil)
		ex.done(cmdSelect, 0, true)
		return nil
	}
	from, to := a[4].val, a[5].val
	desc := strings.EqualFold(a.text(6), "desc")
	var rows []engine.Row
	if err := ex.do(func() error {
		l, err := ex.in.ReadErrorLog(ex.hst, ex.s.id, int(log), a.text(2), a.text(3))
		for _, r := range l {
			d := sqltypes.NewDateTime(r.Date)
			if !from.IsNull() && sqltypes.Order(d, from) < 0 || !to.IsNull() && sqltypes.Order(d, to) > 0 {
				continue
			}
			rows = append(rows, engine.Row{d, sqltypes.NewNVarChar(r.Process), sqltypes.NewNVarChar(r.Text)})
		}
		return err
	}); err != nil {
		return err
	}
	if desc {
		for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
			rows[i], rows[j] = rows[j], rows[i]
		}
	}
	ex.rowsOut(cols, rows)
	ex.done(cmdSelect, int64(len(rows)), true)
	return nil
}

// fault is mssqlsim.fault: @kind and named arguments of the fault.
func (ex *exec) fault(args []arg) error {
	kind := ""
	rest := map[string]string{}
	for i, a := range args {
		text := ""
		if !a.val.IsNull() {
			v, err := sqltypes.Cast(a.val, sqltypes.TNVarCharMax, 0)
			if err != nil {
				return err
			}
			text = v.Text()
		}
		switch {
		case a.name == "@kind" || a.name == "" && i == 0:
			kind = text
		case a.name == "":
			return errNum(119, 15, 1, "Must pass parameter number %d and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'.", i+1)
		default:
			rest[strings.TrimPrefix(a.name, "@")] = text
		}
	}
	return ex.do(func() error { return ex.infos(ex.in.Fault(ex.hst, ex.s.id, kind, rest)) })
}

func (ex *exec) spWho(args []arg) error {
	if len(args) > 1 {
		return errNum(8144, 16, 2, "Procedure or function sp_who has too many arguments specified.")
	}
	cols := []Column{
		{Name: "spid", Type: sqltypes.TSmallInt}, {Name: "ecid", Type: sqltypes.TSmallInt}, {Name: "status", Type: sqltypes.TNVarChar(30)},
		{Name: "loginame", Type: sqltypes.TNVarChar(128)}, {Name: "hostname", Type: sqltypes.TNVarChar(128)}, {Name: "blk", Type: sqltypes.TVarChar(5)},
		{Name: "dbname", Type: sqltypes.TNVarChar(128), Nullable: true}, {Name: "cmd", Type: sqltypes.TNVarChar(26)}, {Name: "request_id", Type: sqltypes.TInt},
	}
	var rows []engine.Row
	if err := ex.do(func() error {
		l, err := ex.in.Sessions(ex.hst, ex.s.id)
		if err != nil {
			return err
		}
		names := map[engine.DatabaseID]string{}
		for _, d := range ex.in.Databases(ex.hst, ex.s.id) {
			names[d.DatabaseID] = d.Name
		}
		for _, s := range l {
			rows = append(rows, engine.Row{
				sqltypes.NewSmallInt(int16(s.ID)), sqltypes.NewSmallInt(0), sqltypes.NewNVarChar(s.Status), sqltypes.NewNVarChar(s.Login),
				sqltypes.NewNVarChar(s.HostName), sqltypes.NewVarChar("0"), sqltypes.NewNVarChar(names[s.DatabaseID]),
				sqltypes.NewNVarChar("AWAITING COMMAND"), sqltypes.NewInt(0),
			})
		}
		return nil
	}); err != nil {
		return err
	}
	ex.rowsOut(cols, rows)
	ex.done(cmdSelect, int64(len(rows)), true)
	return nil
}
