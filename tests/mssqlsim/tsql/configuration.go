package tsql

import (
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// configOption is one option of sp_configure.
type configOption struct {
	id                int
	name              string
	value, min, max   int64
	dynamic, advanced bool
	running           int64
}

// configuration lists the options with their values. It runs inside do.
func (ex *exec) configuration() []configOption {
	l := []configOption{
		{id: 101, name: "recovery interval (min)", max: 32767, dynamic: true, advanced: true},
		{id: 103, name: "user connections", max: 32767, advanced: true},
		{id: 503, name: "max worker threads", max: 65535, dynamic: true, advanced: true},
		{id: 518, name: "show advanced options", max: 1, dynamic: true},
		{id: 1538, name: "cost threshold for parallelism", value: 5, max: 32767, dynamic: true, advanced: true},
		{id: 1539, name: "max degree of parallelism", max: 32767, dynamic: true, advanced: true},
		{id: 1543, name: "min server memory (MB)", max: 2147483647, dynamic: true, advanced: true},
		{id: 1544, name: "max server memory (MB)", value: 2147483647, min: 128, max: 2147483647, dynamic: true, advanced: true},
		{id: 1562, name: "clr enabled", max: 1, dynamic: true},
		{id: 1568, name: "default trace enabled", value: 1, max: 1, dynamic: true, advanced: true},
		{id: 1576, name: "remote admin connections", max: 1, dynamic: true},
		{id: 1579, name: "backup compression default", max: 1, dynamic: true},
		{id: 1584, name: "backup checksum default", max: 1, dynamic: true},
		{id: 16384, name: "Agent XPs", max: 1, dynamic: true, advanced: true},
		{id: 16390, name: "xp_cmdshell", max: 1, dynamic: true, advanced: true},
	}
	configured, running := ex.in.Configuration()
	for i := range l {
		l[i].running = l[i].value
		if v, ok := running[l[i].id]; ok {
			l[i].running = v
		}
		if v, ok := configured[l[i].id]; ok {
			l[i].value = v
		}
	}
	return l
}

// spConfigure is sp_configure: it lists options or sets one, for RECONFIGURE to install.
func (ex *exec) spConfigure(args []arg) error {
	a, err := named("sp_configure", args, "@configname", "@configvalue")
	if err != nil {
		return err
	}
	name := a.text(0)
	var options []configOption
	if err := ex.do(func() error { options = ex.configuration(); return nil }); err != nil {
		return err
	}
	advanced := false
	for _, o := range options {
		advanced = advanced || o.id == 518 && o.running == 1
	}
	if !a[1].deflt {
		return ex.configure(options, advanced, name, a)
	}
	cols := []Column{
		{Name: "name", Type: sqltypes.TNVarChar(35)}, {Name: "minimum", Type: sqltypes.TInt}, {Name: "maximum", Type: sqltypes.TInt},
		{Name: "config_value", Type: sqltypes.TInt}, {Name: "run_value", Type: sqltypes.TInt},
	}
	var rows []engine.Row
	for _, o := range options {
		if name != "" && !equalName(o.name, name) || o.advanced && !advanced {
			continue
		}
		rows = append(rows, engine.Row{
			sqltypes.NewNVarChar(o.name), sqltypes.NewInt(int32(o.min)), sqltypes.NewInt(int32(o.max)), sqltypes.NewInt(int32(o.value)), sqltypes.NewInt(int32(o.running)),
		})
	}
	if name != "" && len(rows) == 0 {
		return errNoOption(name)
	}
	ex.rowsOut(cols, rows)
	ex.done(cmdSelect, int64(len(rows)), true)
	return nil
}

func errNoOption(name string) error {
	return errNum(15123, 16, 1, "The configuration option '%s' does not exist, or it may be an advanced option.", name)
}

func (ex *exec) configure(options []configOption, advanced bool, name string, a procArgs) error {
	for _, o := range options {
		if !equalName(o.name, name) || o.advanced && !advanced {
			continue
		}
		v, err := a.int(1, 0)
		if err != nil {
			return err
		}
		if v < o.min || v > o.max {
			return errNum(15129, 16, 1, "'%d' is not a valid value for configuration option '%s'.", v, o.name)
		}
		if err := ex.do(func() error { return ex.in.Configure(ex.hst, ex.s.id, o.id, v) }); err != nil {
			return err
		}
		ex.message(*sqltypes.Errf(15457, 0, 1, "Configuration option '%s' changed from %d to %d. Run the RECONFIGURE statement to install.", o.name, o.value, v), 0, "")
		return nil
	}
	return errNoOption(name)
}

func (ex *exec) reconfigure() error {
	return ex.do(func() error { return ex.in.Reconfigure(ex.hst, ex.s.id) })
}

// spServer is sp_addserver and sp_dropserver for the server's own name (FG 7.4).
func (ex *exec) spServer(proc string, args []arg) error {
	if proc == "sp_dropserver" {
		a, err := named(proc, args, "@server", "@droplogins")
		if err != nil {
			return err
		}
		return ex.do(func() error { return ex.in.DropServer(ex.hst, ex.s.id, a.text(0)) })
	}
	a, err := named(proc, args, "@server", "@local", "@duplicate_ok")
	if err != nil {
		return err
	}
	if name := a.text(0); name == "" || sqltypes.TextLen(name) > 128 {
		return errNum(15015, 16, 1, "The server '%s' does not exist. Use sp_helpserver to show available servers.", name)
	}
	if !equalName(a.text(1), "local") {
		return errNum(15663, 16, 1, "Feature \"sp_addserver\" is no longer supported. Replace remote servers by using linked servers.")
	}
	return ex.do(func() error { return ex.in.AddServer(ex.hst, ex.s.id, a.text(0)) })
}
