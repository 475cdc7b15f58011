package tsql_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// show prints an answer: columns and rows with |, messages as the client tools do.
func show(r *tsql.Results, types bool) string {
	var b strings.Builder
	for _, s := range r.Sets {
		for i, c := range s.Columns {
			if i > 0 {
				b.WriteString("|")
			}
			name := c.Name
			if name == "" {
				name = "-"
			}
			b.WriteString(name)
			if types {
				b.WriteString(" " + c.Type.String())
			}
		}
		b.WriteString("\n")
		for _, row := range s.Rows {
			for i, v := range row {
				if i > 0 {
					b.WriteString("|")
				}
				text := v.Format()
				if text == "" {
					text = "''"
				}
				b.WriteString(text)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "(%d rows)\n", len(s.Rows))
	}
	for _, m := range r.Messages {
		proc := ""
		if m.Procedure != "" {
			proc = ", Procedure " + m.Procedure
		}
		if m.Number == 0 {
			fmt.Fprintf(&b, "%s\n", m.Text)
			continue
		}
		fmt.Fprintf(&b, "Msg %d, Level %d, State %d%s, Line %d: %s\n", m.Number, m.Class, m.State, proc, m.Line, m.Text)
	}
	for _, d := range r.Dones {
		if d.Counted && d.Command != 0xC1 {
			fmt.Fprintf(&b, "(%d rows affected)\n", d.Count)
		}
	}
	return b.String()
}

// TestScripts runs testdata/scripts: each file is a story with its own servers in virtual time.
//
//	node name [version=N]         makes a server; the first sql line makes "a" by itself
//	sql [node] [s=session] [u=login] [p=password] [types] [wait]   runs the text, prints the answer
//	rpc [node] declare="…"        the same with parameters given as "@a = value" lines after ----
//	bg  [node] s=session          starts the text and goes on; the next sql of that session waits
//	run duration | kill node | start node | cut node | heal node
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Parallel()
		c := newVCluster()
		sessions := map[string]*tsql.Session{}
		running := map[string]*request{}
		node := func(d *datadriven.TestData) *vnode {
			name := "a"
			for _, a := range d.CmdArgs {
				if len(a.Vals) == 0 && a.Key != "types" && a.Key != "wait" {
					name = a.Key
				}
			}
			if c.nodes[name] == nil {
				c.add(name, nil)
			}
			return c.nodes[name]
		}
		arg := func(d *datadriven.TestData, key, def string) string {
			for _, a := range d.CmdArgs {
				if a.Key == key && len(a.Vals) > 0 {
					return a.Vals[0]
				}
			}
			return def
		}
		has := func(d *datadriven.TestData, key string) bool {
			for _, a := range d.CmdArgs {
				if a.Key == key {
					return true
				}
			}
			return false
		}
		session := func(d *datadriven.TestData, n *vnode) (string, *tsql.Session, error) {
			user, password := arg(d, "u", "sa"), arg(d, "p", "Passw0rd!")
			key := n.name + "/" + arg(d, "s", "") + "/" + user
			if s := sessions[key]; s != nil {
				return key, s, nil
			}
			s, err := n.login(engine.LoginRequest{User: user, Password: password, Database: arg(d, "db", ""), HostName: "test", AppName: "script", ReadOnlyIntent: has(d, "readonly")})
			if err == nil {
				sessions[key] = s
			}
			return key, s, err
		}
		run := func(d *datadriven.TestData, params []tsql.Param) string {
			n := node(d)
			key, s, err := session(d, n)
			if err != nil {
				return fmt.Sprintf("login: %v\n", err)
			}
			out := ""
			if q := running[key]; q != nil {
				c.pass(c.now.Add(10*time.Minute), func() bool { return q.task.ended })
				out += "earlier: " + show(&q.res, false)
				delete(running, key)
			}
			q, err := n.exec(s, tsql.Request{SQL: d.Input, Params: params}, 10*time.Minute)
			out += show(&q.res, has(d, "types"))
			if err != nil {
				out += err.Error() + "\n"
			} else if q.err != nil {
				out += "session: " + q.err.Error() + "\n"
				delete(sessions, key)
			}
			if out == "" {
				out = "ok\n"
			}
			return out
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "node":
				name := d.CmdArgs[0].Key
				c.add(name, func(cfg *engine.Config) {
					if arg(d, "version", "") != "" {
						if _, err := fmt.Sscan(arg(d, "version", ""), &cfg.Major); err != nil {
							d.Fatalf(t, "version: %v", err)
						}
					}
				})
				return ""
			case "sql":
				return run(d, nil)
			case "rpc":
				var params []tsql.Param
				for _, a := range d.CmdArgs {
					if strings.HasPrefix(a.Key, "@") {
						v := sqltypes.NewNVarChar(a.Vals[0])
						if n, err := sqltypes.Cast(v, sqltypes.TInt, 0); err == nil {
							v = n
						}
						params = append(params, tsql.Param{Name: a.Key, Value: v})
					}
				}
				return run(d, params)
			case "bg":
				n := node(d)
				key, s, err := session(d, n)
				if err != nil {
					return err.Error()
				}
				running[key] = n.begin(s, tsql.Request{SQL: d.Input})
				return "started\n"
			case "run":
				dur, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					t.Fatal(err)
				}
				c.pass(c.now.Add(dur), func() bool { return false })
				return ""
			case "kill", "start":
				n := c.nodes[d.CmdArgs[0].Key]
				for k := range sessions {
					if strings.HasPrefix(k, n.name+"/") {
						delete(sessions, k)
					}
				}
				if d.Cmd == "kill" {
					n.kill()
				} else {
					n.start()
				}
				return ""
			case "cut", "heal":
				c.cut[d.CmdArgs[0].Key] = d.Cmd == "cut"
				return ""
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}
