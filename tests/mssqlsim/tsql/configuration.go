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
}

// configuration lists the options with their fixed values: the simulator has none that changes
// its behaviour, so sp_configure refuses to change them.
func (ex *exec) configuration() []configOption {
	return []configOption{
		{101, "recovery interval (min)", 0, 0, 32767, true, true},
		{103, "user connections", 0, 0, 32767, false, true},
		{503, "max worker threads", 0, 128, 65535, true, true},
		{518, "show advanced options", 0, 0, 1, true, false},
		{1538, "cost threshold for parallelism", 5, 0, 32767, true, true},
		{1539, "max degree of parallelism", 0, 0, 32767, true, true},
		{1543, "min server memory (MB)", 0, 0, 2147483647, true, true},
		{1544, "max server memory (MB)", 2147483647, 128, 2147483647, true, true},
		{1562, "clr enabled", 0, 0, 1, true, false},
		{1568, "default trace enabled", 1, 0, 1, true, true},
		{1576, "remote admin connections", 0, 0, 1, true, false},
		{1579, "backup compression default", 0, 0, 1, true, false},
		{1584, "backup checksum default", 0, 0, 1, true, false},
		{16384, "Agent XPs", 0, 0, 1, true, true},
		{16390, "xp_cmdshell", 0, 0, 1, true, true},
	}
}

// spConfigure is sp_configure: it lists options, and refuses to change one.
func (ex *exec) spConfigure(args []arg) error {
	a, err := named("sp_configure", args, "@configname", "@configvalue")
	if err != nil {
		return err
	}
	name := a.text(0)
	if !a[1].deflt {
		found := false
		for _, o := range ex.configuration() {
			if equalName(o.name, name) {
				found = true
				v, err := a.int(1, 0)
				if err != nil {
					return err
				}
				if v < o.min || v > o.max {
					return errNum(15129, 16, 1, "'%d' is not a valid value for configuration option '%s'.", v, o.name)
				}
				if err := ex.do(func() error {
					if !ex.in.HasPermission(ex.s.id, engine.ClassServer, "", "ALTER SETTINGS") {
						return errNum(15247, 16, 1, "User does not have permission to perform this action.")
					}
					return nil
				}); err != nil {
					return err
				}
				if ex.s.config == nil {
					ex.s.config = map[int]int64{}
				}
				ex.s.config[o.id] = v
				ex.message(*sqltypes.Errf(15457, 0, 1, "Configuration option '%s' changed from %d to %d. Run the RECONFIGURE statement to install.", o.name, o.value, v), 0, "")
			}
		}
		if !found {
			return errNum(15123, 16, 1, "The configuration option '%s' does not exist, or it may be an advanced option.", name)
		}
		return nil
	}
	cols := []Column{
		{Name: "name", Type: sqltypes.TNVarChar(35)}, {Name: "minimum", Type: sqltypes.TInt}, {Name: "maximum", Type: sqltypes.TInt},
		{Name: "config_value", Type: sqltypes.TInt}, {Name: "run_value", Type: sqltypes.TInt},
	}
	var rows []engine.Row
	for _, o := range ex.configuration() {
		if name != "" && !equalName(o.name, name) || name == "" && o.advanced {
			continue
		}
		rows = append(rows, engine.Row{
			sqltypes.NewNVarChar(o.name), sqltypes.NewInt(int32(o.min)), sqltypes.NewInt(int32(o.max)), sqltypes.NewInt(int32(o.value)), sqltypes.NewInt(int32(o.value)),
		})
	}
	if name != "" && len(rows) == 0 {
		return errNum(15123, 16, 1, "The configuration option '%s' does not exist, or it may be an advanced option.", name)
	}
	ex.rowsOut(cols, rows)
	ex.done(cmdSelect, int64(len(rows)), true)
	return nil
}
