package tsql_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

var update = flag.Bool("update", false, "write the golden file anew")

func TestStatementsAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 3, 4, 5, 6, 7, 123456700, time.UTC)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	guard := tsql.Guard{Group: "ag1", Until: until, Roles: []ag.Role{ag.RoleSecondary, ag.RoleResolving}, Sequence: 4294967300}
	open := tsql.Guard{Group: "ag1"}
	second := tsql.Replica{Server: "ag1-1", URL: "TCP://ag1-1.ag1.ns.svc:5022", Mode: ag.ModeSynchronous}
	texts := []struct{ name, text string }{
		{"create group external", tsql.CreateGroup(tsql.Group{Name: "ag1", External: true, Lease: 15 * time.Second,
			First: tsql.Replica{Server: "ag1-0", URL: "TCP://ag1-0.ag1.ns.svc:5022", Mode: ag.ModeSynchronous, Readable: true}}, until)},
		{"create group none", tsql.CreateGroup(tsql.Group{Name: "a]g", Lease: 15 * time.Second, First: second}, time.Time{})},
		{"drop group", tsql.DropGroup("ag1")},
		{"add replica", tsql.AddReplica(tsql.Guard{Group: "ag1", Until: until, Roles: []ag.Role{ag.RolePrimary}}, true, second)},
		{"add replica none", tsql.AddReplica(open, false, second)},
		{"add witness", tsql.AddReplica(open, true, tsql.Replica{Server: "ag1-2", URL: "TCP://ag1-2.ag1.ns.svc:5022", Mode: ag.ModeConfigurationOnly})},
		{"remove replica", tsql.RemoveReplica("ag1", "ag1-1")},
		{"modify url", tsql.ModifyReplicaURL("ag1", "ag1-1", "TCP://x:5022")},
		{"modify mode", tsql.ModifyReplicaMode(open, "ag1-1", ag.ModeAsynchronous)},
		{"modify readable", tsql.ModifyReplicaReadable("ag1", "ag1-1", true)},
		{"retry seeding", tsql.RetrySeeding("ag1", "ag1-1")},
		{"join", tsql.Join("ag1", true, false)},
		{"join witness", tsql.Join("ag1", true, true)},
		{"grant create any database", tsql.GrantCreateAnyDatabase("ag1")},
		{"re-seat", tsql.SetRoleSecondary(guard)},
		{"offline", tsql.Offline(tsql.Guard{Group: "ag1", Until: until, Roles: []ag.Role{ag.RolePrimary}})},
		{"failover", tsql.Failover(guard, 15*time.Second, false)},
		{"failover without lease", tsql.Failover(open, 0, false)},
		{"force", tsql.Failover(guard, 15*time.Second, true)},
		{"renew write lease", tsql.RenewWriteLease(tsql.Guard{Group: "ag1", Until: until}, 15*time.Second)},
		{"commit rule", tsql.SetCommitRule(open, 1)},
		{"rejoin", tsql.Rejoin(guard, true, ag.ModeSynchronous)},
		{"re-seed", tsql.Reseed(guard, true, []string{"or]ders", "o'dd"})},
		{"rejoin of a witness", tsql.Rejoin(guard, true, ag.ModeConfigurationOnly)},
		{"guard none or resolving", tsql.Offline(tsql.Guard{Group: "ag1", Roles: []ag.Role{ag.RoleNone, ag.RoleResolving}, Sequence: 7})},
		{"server time", tsql.ServerTime()},
		{"create endpoint", tsql.CreateEndpoint(tsql.Endpoint{Name: "mirroring", Port: 5022, Certificate: "c-0"})},
		{"create endpoint witness", tsql.CreateEndpoint(tsql.Endpoint{Name: "mirroring", Port: 5022, Certificate: "c-0", Witness: true})},
		{"start endpoint", tsql.StartEndpoint("mirroring")},
		{"stop endpoint", tsql.StopEndpoint("mirroring")},
		{"endpoint certificate", tsql.SetEndpointCertificate("mirroring", "c-0-2")},
		{"grant connect", tsql.GrantConnect("mirroring", "c-1")},
		{"create master key", tsql.CreateMasterKey("it's")},
		{"create certificate", tsql.CreateCertificate("c-0", "ag1-0 of ag1", start, start.AddDate(10, 0, 0))},
		{"export certificate", tsql.ExportCertificate("c-0")},
		{"trust certificate", tsql.TrustCertificate("c-1", []byte{0x30, 0x82, 0xab}, "mirroring")},
		{"drop trust", tsql.DropTrust("c-1")},
		{"operator login", strings.Join(tsql.OperatorLogin("kubectl_mssql", "p'w", "random"), "\n-- next batch\n")},
		{"login password", tsql.SetLoginPassword("kubectl_mssql", "p'w")},
		{"create database", strings.Join(tsql.CreateDatabase("app's [db]"), "\n-- next batch\n")},
		{"add database", tsql.AddDatabase("ag1", "app")},
		{"remove database", tsql.RemoveDatabase("ag1", "app")},
		{"resume database", tsql.ResumeDatabase("app")},
		{"suspend database", tsql.SuspendDatabase("app")},
		{"observe", tsql.Observe("ag1")},
		{"trust", tsql.Trust()},
		{"ping", tsql.Ping("t-1")},
		{"diagnostics", tsql.Diagnostics()},
		{"product version", tsql.ProductVersion()},
		{"manager state", tsql.ManagerState("ag1")},
		{"manager copies", tsql.ManagerCopies("ag1")},
	}
	var b strings.Builder
	for _, x := range texts {
		fmt.Fprintf(&b, "=== %s\n%s\n", x.name, x.text)
	}
	const golden = "testdata/statements.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("statements differ (-golden +now); go test -update writes them anew\n%s", d)
	}
}

func TestLeaseIsRoundedDownNeverUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		15*time.Second + 999*time.Millisecond: "= 15)",
		300 * time.Millisecond:                "= 1)",
	} {
		if got := tsql.RenewWriteLease(tsql.Guard{Group: "a"}, d); !strings.Contains(got, want) {
			t.Errorf("%s: %s does not contain %q", d, got, want)
		}
	}
}

func TestOnlyLeaseNumbersAreTolerated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		numbers []int32
		want    bool
	}{
		{"no lease in this group", []int32{47116}, true},
		{"a longer lease is in force", []int32{47119}, true},
		{"not synchronized behind a lease refusal", []int32{47119, 41142}, false},
		{"nothing at all", nil, false},
	} {
		if got := tsql.LeaseTolerated(tt.numbers); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// unquote reads one quoted token from the start of text as SQL Server's lexer does,
// and returns its value and what follows.
func unquote(text string, closing byte) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != closing {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == closing {
			b.WriteByte(closing)
			i++
			continue
		}
		return b.String(), text[i+1:], true
	}
	return "", "", false
}

func FuzzQuoting(f *testing.F) {
	for _, s := range []string{"", "a", "]", "]]", "'", "''; DROP DATABASE x--", "a]; SHUTDOWN --", "ü]’'", "\x00", "N'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := tsql.Ident(s)
		if v, rest, ok := unquote(q[1:], ']'); !ok || v != s || rest != "" || q[0] != '[' {
			t.Errorf("Ident(%q) = %q reads back as %q and leaves %q", s, q, v, rest)
		}
		l := tsql.Literal(s)
		if v, rest, ok := unquote(l[2:], '\''); !ok || v != s || rest != "" || l[:2] != "N'" {
			t.Errorf("Literal(%q) = %q reads back as %q and leaves %q", s, l, v, rest)
		}
	})
}

func FuzzTimeReadsBack(f *testing.F) {
	f.Add(int64(0), int64(0))
	f.Add(int64(1772600767), int64(123456789))
	f.Fuzz(func(t *testing.T, sec, nsec int64) {
		in := time.Unix(sec%253402300799, nsec%1e9).UTC()
		if in.Year() < 1 || in.Year() > 9999 {
			t.Skip()
		}
		got, err := time.Parse("'2006-01-02T15:04:05.9999999'", tsql.Time(in))
		if err != nil {
			t.Fatal(err)
		}
		if d := in.Sub(got); d < 0 || d >= 100*time.Nanosecond {
			t.Errorf("%s is written as %s: an expiry may only be rounded down", in, tsql.Time(in))
		}
	})
}
