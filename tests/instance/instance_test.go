//go:build linux

// Package instance_test runs the real program as process manager of the simulated
// sqlservr: real logins, real leases in real time.
package instance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

const (
	namespace = "prod"
	group     = "ag1"
	replica   = "ag1-0"
	agUID     = "uid-1"
	podUID    = "pod-uid-1"
	saSecret  = "Sa-Secret-0815!"
	opSecret  = "Op-Secret-4711!"
)

// programs builds both programs once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "instance-test-")
	if err != nil {
		return "", err
	}
	for name, pkg := range map[string]string{"kubectl-mssql": "./cmd/kubectl-mssql", "sqlservr": "./tests/mssqlsim/cmd/sqlservr"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg) //nolint:gosec // fixed arguments
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// container is one container: the program as its first process.
type container struct {
	t      *testing.T
	dir    string
	port   int32
	api    *apiServer
	cmd    *exec.Cmd
	probes string
	nonce  string
	done   chan struct{}

	mu  sync.Mutex
	log []string
}

// newContainer prepares volume, secrets and configuration of a group of so many
// replicas; the server's own group has the first one only.
func newContainer(t *testing.T, replicas int) *container {
	t.Helper()
	if testing.Short() {
		t.Skip("runs real processes for about a minute")
	}
	c := &container{t: t, dir: t.TempDir(), port: freePort(t)}
	c.api = newAPIServer(t, ag.Authority{AGUID: agUID})
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name, g.UID = namespace, group, agUID
	g.Spec.AcceptEula, g.Spec.Edition, g.Spec.Port, g.Spec.EndpointPort = "Y", "Developer", c.port, freePort(t)
	g.Spec.Replicas = make([]v1alpha1.AGReplicaSpec, replicas)
	g.Spec.AutomaticFailover.Timing.Profile = v1alpha1.TimingFast
	g.Spec.AutomaticFailover.HealthCheckFailures = 2
	g.Spec.TerminationGracePeriodSeconds = 20
	text, err := instance.ConfigForGroup(g, 0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	c.write("instance.json", text)
	c.write("sa", saSecret)
	c.write("operator", opSecret)
	c.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`, c.api.srv.URL))
	for _, sub := range []string{"mssql", "tls"} {
		if err := os.Mkdir(filepath.Join(c.dir, sub), 0o770); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *container) write(name, content string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// start runs the container until it ends.
func (c *container) start() {
	c.t.Helper()
	bin, err := programs()
	if err != nil {
		c.t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(c.dir, name) }
	c.cmd = exec.Command(filepath.Join(bin, "kubectl-mssql"), "instance", "run", //nolint:gosec // built above
		"--config", in("instance.json"), "--data-dir", in("mssql"), "--sqlservr", filepath.Join(bin, "sqlservr"),
		"--sa-password-file", in("sa"), "--operator-password-file", in("operator"), "--tls-dir", in("tls"),
		"--probe-address", "127.0.0.1:0", "--manager-address", "127.0.0.1:0", "--kubeconfig", in("kubeconfig"))
	c.cmd.Env = append(os.Environ(), "POD_NAME="+replica, "POD_NAMESPACE="+namespace, "POD_UID="+podUID,
		"MSSQLSIM_ROOT="+in("mssql"), "MSSQLSIM_SERVER_NAME="+replica, "MSSQLSIM_DAC_PORT=0", "MSSQLSIM_WATCHDOG=Y")
	c.done, c.probes, c.nonce = make(chan struct{}), "", ""
	c.mu.Lock()
	c.log = nil
	c.mu.Unlock()
	r, w := io.Pipe()
	c.cmd.Stdout, c.cmd.Stderr = w, w
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			c.mu.Lock()
			c.log = append(c.log, s.Text())
			c.mu.Unlock()
		}
	}()
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait()
		_ = w.Close()
	}()
	c.t.Cleanup(func() {
		select {
		case <-c.done:
		default:
			if pid := c.server(); pid > 0 {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			_ = c.cmd.Process.Kill()
			<-c.done
		}
		if c.t.Failed() {
			c.t.Log(strings.Join(c.lines(), "\n"))
		}
	})
	c.eventually("the manager names its run", func() bool {
		c.nonce, c.probes = c.field("nonce"), c.field("probes")
		return c.nonce != "" && c.probes != ""
	})
}

func (c *container) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.log...)
}

// field is the value of a key in the manager's log, the newest.
func (c *container) field(key string) string {
	value := ""
	for _, line := range c.lines() {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry[key] != nil {
			value = fmt.Sprint(entry[key])
		}
	}
	return value
}

// server is sqlservr's process.
func (c *container) server() int {
	pid, err := strconv.ParseFloat(c.field("pid"), 64)
	if err != nil {
		return 0
	}
	return int(pid)
}

func (c *container) eventually(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.NewTimer(90 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			c.t.Fatalf("did not happen in 90 s: %s", what)
		case <-c.done:
			c.t.Fatalf("the container ended (%d) before: %s", c.cmd.ProcessState.ExitCode(), what)
		case <-tick.C:
		}
	}
}

func (c *container) ended() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(90 * time.Second):
		c.t.Fatal("the container did not end")
	}
	return c.cmd.ProcessState.ExitCode()
}

func (c *container) probe(path string) (int, string) {
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + c.probes + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// session logs in as the operator's login.
func (c *container) session() mssql.Conn {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	conn, err := (&mssql.Dialer{}).Dial(ctx, fmt.Sprintf("127.0.0.1:%d", c.port), mssql.Login{
		User: "kubectl_mssql", Password: func(context.Context) (string, error) { return opSecret, nil },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (c *container) exec(conn mssql.Conn, batches ...string) {
	c.t.Helper()
	for _, b := range batches {
		ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
		err := conn.Exec(ctx, b)
		cancel()
		if err != nil {
			c.t.Fatalf("%s: %v", b, err)
		}
	}
}

// role and remaining write lease by the server's own word.
func (c *container) role(conn mssql.Conn) (ag.Role, time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	results, err := conn.Query(ctx, tsql.ManagerState(group))
	if err != nil || len(results) != tsql.ManagerStateSets {
		c.t.Fatalf("read the server's state: %v (%d sets)", err, len(results))
	}
	if len(results[1].Rows) == 0 {
		return ag.RoleNone, 0
	}
	row := results[1].Row(0)
	return ag.Role(row.Text("role_desc")), time.Duration(row.Int("lease_ticks")) * time.Millisecond
}

// primary makes the container's server the primary of a group, as the operator does:
// grant first, then the group, then the end of the operation.
func (c *container) primary() mssql.Conn {
	c.t.Helper()
	c.eventually("the server is ready", func() bool { code, _ := c.probe("/ready"); return code == http.StatusOK })
	grant := ag.Authority{
		AGUID: agUID, Epoch: 1, Holder: ag.Run{Replica: replica, PodUID: podUID, Nonce: c.nonce},
		Operation: &ag.Operation{ID: "1", Kind: ag.OperationBootstrap, Phase: ag.PhaseCreating, Target: replica},
	}
	c.api.put(c.t, grant)
	conn := c.session()
	c.exec(conn, tsql.CreateMasterKey("Master-Key-1"),
		tsql.CreateCertificate("c0", replica, time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0)),
		tsql.CreateEndpoint(tsql.Endpoint{Name: "mirroring", Port: freePort(c.t), Certificate: "c0"}),
		tsql.CreateGroup(tsql.Group{
			Name: group, External: true, Lease: 10 * time.Second,
			First: tsql.Replica{Server: replica, URL: "TCP://localhost:5022", Mode: ag.ModeSynchronous},
		}, time.Time{}))
	c.eventually("the server is PRIMARY", func() bool { r, _ := c.role(conn); return r == ag.RolePrimary })
	now := c.api.record()
	now.Operation, now.LastPrimary = nil, replica
	now.Rule = ag.CommitRule{Number: 1, Set: []ag.Member{{Replica: replica}}}
	c.api.put(c.t, now)
	before := c.api.renewed()
	c.eventually("the grant is used", func() bool { return c.api.renewed() > before })
	return conn
}

func TestManager_HoldsBothLeasesOfARealServer(t *testing.T) {
	t.Parallel()
	c := newContainer(t, 1)
	c.start()
	conn := c.primary()
	// Three times as long as the write lease lasts.
	before := c.api.renewed()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		role, left := c.role(conn)
		if role != ag.RolePrimary || left < 3*time.Second || left > 10*time.Second {
			t.Fatalf("the server is %s, its write lease lasts %s", role, left)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-c.done:
			t.Fatal("the container ended")
		}
	}
	for _, want := range []string{
		"mssql_up 1", `mssql_replica_role{role="primary"} 1`, "mssql_lease_holder 1", "mssql_endpoint_started 1",
		`mssql_diagnostics_state{component="system"} 1`,
	} {
		if code, body := c.probe("/metrics"); code != http.StatusOK || !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics (%d) lacks %s", code, want)
		}
	}
	if n := c.api.renewed() - before; n < 10 {
		t.Errorf("the Lease was renewed %d times", n)
	}
	// The operator takes the grant away: the server fences itself, and nobody is killed.
	next := c.api.record()
	next.Epoch, next.Holder = 2, ag.Run{}
	c.api.put(t, next)
	c.eventually("the write lease ends", func() bool { r, _ := c.role(conn); return r == ag.RoleResolving })
	if code, body := c.probe("/ready"); code != http.StatusOK {
		t.Errorf("/ready of a resolving replica: %d %s", code, body)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.ended(); code != instance.ExitClean {
		t.Errorf("exit code %d", code)
	}
	// The next run has no authority, whatever the Lease says of the last one.
	next.Epoch, next.Holder = 3, ag.Run{Replica: replica, PodUID: podUID, Nonce: c.nonce}
	c.api.put(t, next)
	renewed := c.api.renewed()
	c.start()
	c.eventually("the server is ready again", func() bool { code, _ := c.probe("/ready"); return code == http.StatusOK })
	if role, _ := c.role(c.session()); role != ag.RoleResolving {
		t.Errorf("a restarted server is %s", role)
	}
	if n := c.api.renewed() - renewed; n != 0 {
		t.Errorf("a new run renewed the old run's Lease %d times", n)
	}
}

func TestManager_WithoutProofItsServerStopsWriting(t *testing.T) {
	t.Parallel()
	c := newContainer(t, 1)
	c.start()
	conn := c.primary()
	c.eventually("the Lease is renewed", func() bool { return c.api.renewed() > 3 })
	// A single replica has nobody to ask, and nobody to lose to: it stays (safety.md §6).
	c.api.setDown(true)
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); {
		if role, left := c.role(conn); role != ag.RolePrimary {
			t.Fatalf("a single replica demoted itself for want of an API server: %s, %s", role, left)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-c.done:
			t.Fatal("the container ended")
		}
	}
	c.api.setDown(false)
	before := c.api.renewed()
	c.eventually("the Lease is renewed again", func() bool { return c.api.renewed() > before })
}

func TestManager_KillsAFrozenPrimary(t *testing.T) {
	t.Parallel()
	c := newContainer(t, 1)
	c.start()
	c.primary()
	if err := syscall.Kill(-c.server(), syscall.SIGSTOP); err != nil { // both processes
		t.Fatal(err)
	}
	began := time.Now()
	code := c.ended()
	if code != instance.ExitLeaseKill && code != instance.ExitHealthKill {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("it took %s", took)
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port)); err == nil {
		_ = conn.Close()
		t.Error("the server is still there")
	}
}

func TestManager_ServersEndEndsTheContainer(t *testing.T) {
	t.Parallel()
	c := newContainer(t, 1)
	c.start()
	c.primary()
	if err := syscall.Kill(c.server(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := c.ended(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
	c.start()
	c.eventually("the server is ready again", func() bool { code, _ := c.probe("/ready"); return code == http.StatusOK })
	if role, _ := c.role(c.session()); role != ag.RoleResolving {
		t.Errorf("a restarted server is %s", role)
	}
}

func TestManager_HandsOverBeforeItStops(t *testing.T) {
	t.Parallel()
	c := newContainer(t, 2)
	c.start()
	conn := c.primary()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.eventually("it waits for the hand-over", func() bool { return c.field("step") == "WaitForHandover" })
	before := c.api.renewed()
	c.eventually("both leases are still renewed", func() bool { return c.api.renewed() > before+2 })
	now := c.api.record()
	now.Operation = &ag.Operation{ID: "2", Kind: ag.OperationHandover, Phase: ag.PhaseDemoting, From: replica, Target: "ag1-1"}
	c.api.put(t, now)
	c.exec(conn, tsql.Offline(tsql.Guard{Group: group, Roles: []ag.Role{ag.RolePrimary}}))
	c.eventually("the group is offline here", func() bool { r, _ := c.role(conn); return r == ag.RoleResolving })
	before = c.api.renewed()
	c.eventually("it goes on while its numbers may be asked for", func() bool { return c.api.renewed() > before+1 })
	if role, _ := c.role(conn); role != ag.RoleResolving {
		t.Errorf("the server is %s", role)
	}
	now = c.api.record()
	now.Operation.Phase, now.Epoch, now.Holder = ag.PhasePublishing, 2, ag.Run{Replica: "ag1-1", PodUID: "other", Nonce: "n"}
	c.api.put(t, now)
	if code := c.ended(); code != instance.ExitClean {
		t.Errorf("exit code %d", code)
	}
}
