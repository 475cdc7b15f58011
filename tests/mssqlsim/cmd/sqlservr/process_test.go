package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

const (
	asProcess  = "MSSQLSIM_TEST_IS_SQLSERVR"
	saPassword = "Str0ng;Passw0rd{}"
)

// TestMain lets the test binary be sqlservr, with the same race detector.
func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is one sqlservr with its volume and ports; it can be started again.
type process struct {
	name, root         string
	port, endpointPort int
	env                []string

	cmd *exec.Cmd
	out *output
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func ports(t *testing.T, n int) []int {
	t.Helper()
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			t.Fatal(l.Addr())
		}
		out = append(out, a.Port)
	}
	return out
}

func newProcess(t *testing.T, name string, env ...string) *process {
	t.Helper()
	p := ports(t, 2)
	return &process{name: name, root: filepath.Join(t.TempDir(), "volume"), port: p[0], endpointPort: p[1], env: env, out: &output{}}
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), asProcess+"=1", "ACCEPT_EULA=Y", "MSSQL_SA_PASSWORD="+saPassword, "MSSQL_ENABLE_HADR=1",
		"MSSQL_IP_ADDRESS=127.0.0.1", "MSSQL_TCP_PORT="+strconv.Itoa(p.port), "MSSQLSIM_DAC_PORT=0", "MSSQLSIM_ROOT="+p.root,
		"MSSQLSIM_SERVER_NAME="+p.name, "MSSQLSIM_START_SECONDS=0.1", "MSSQLSIM_MEMORY_MB=4096", "TZ=UTC")
	p.cmd.Env = append(p.cmd.Env, p.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := p.cmd
	t.Cleanup(func() {
		_ = started.Process.Kill()
		_ = started.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", p.name, p.out)
		}
		if strings.Contains(p.out.String(), "DATA RACE") {
			t.Errorf("%s has a data race", p.name)
		}
	})
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// db opens a pool; ready tells when the server takes logins.
func (p *process) db(t *testing.T) *sql.DB {
	t.Helper()
	u := url.URL{
		Scheme: "sqlserver", User: url.UserPassword("sa", saPassword), Host: "127.0.0.1:" + strconv.Itoa(p.port),
		RawQuery: url.Values{"TrustServerCertificate": {"true"}, "dial timeout": {"3"}}.Encode(),
	}
	db, err := sql.Open("sqlserver", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func ready(ctx context.Context, t *testing.T, db *sql.DB) {
	t.Helper()
	if err := server.Poll(ctx, "the server takes logins", func(ctx context.Context) (bool, error) {
		err := db.PingContext(ctx)
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestProcess_StopsCleanlyOnSIGTERM(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	p := newProcess(t, "alone", "MSSQL_DB=app", "MSSQL_USER=joe", "MSSQL_PASSWORD=J0e;Password")
	p.start(t)
	db := p.db(t)
	ready(ctx, t, db)
	var name string
	var databases int
	if err := server.Poll(ctx, "the first database is there", func(ctx context.Context) (bool, error) {
		err := db.QueryRowContext(ctx, "SELECT @@SERVERNAME, (SELECT COUNT(*) FROM sys.databases WHERE name = 'app')").Scan(&name, &databases)
		return databases == 1, err
	}); err != nil || name != "alone" {
		t.Fatalf("name %q: %v", name, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	log, err := os.ReadFile(filepath.Join(p.root, "log", "errorlog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SQL Server is now ready for client connections", "SQL Server is terminating because of a system shutdown"} {
		if !bytes.Contains(log, []byte(want)) || !strings.Contains(p.out.String(), want) {
			t.Errorf("the error log or stdout lacks %q", want)
		}
	}
}

func TestProcess_SHUTDOWNEndsIt(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	p := newProcess(t, "alone")
	p.start(t)
	db := p.db(t)
	ready(ctx, t, db)
	_, _ = db.ExecContext(ctx, "SHUTDOWN")
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("exit after SHUTDOWN: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("the process runs on after SHUTDOWN")
	}
}

// childOf finds the serving process of a watchdog by what it says in its log.
func (p *process) childOf(t *testing.T) *os.Process {
	t.Helper()
	_, rest, ok := strings.Cut(p.out.String(), "Server process ID is ")
	if !ok {
		t.Fatalf("no process id in the log:\n%s", p.out)
	}
	number, _, _ := strings.Cut(rest, ".")
	pid, err := strconv.Atoi(number)
	if err != nil || pid == p.cmd.Process.Pid {
		t.Fatalf("process id %q, the parent's is %d", number, p.cmd.Process.Pid)
	}
	child, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func TestProcess_TheWatchdogsChildOutlivesIt(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	p := newProcess(t, "watched", "MSSQLSIM_WATCHDOG=1")
	p.start(t)
	db := p.db(t)
	ready(ctx, t, db)
	child := p.childOf(t)
	t.Cleanup(func() { _ = child.Kill() })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = p.cmd.Process.Wait()
	if err := db.PingContext(ctx); err != nil {
		t.Errorf("the child is gone with its parent: %v", err)
	}
	if err := child.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Poll(ctx, "nobody serves", func(ctx context.Context) (bool, error) {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(p.port))
		if err == nil {
			_ = c.Close()
		}
		return err != nil, nil
	}); err != nil {
		t.Error(err)
	}
}

func TestProcess_TheWatchdogPassesSIGTERMOn(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	p := newProcess(t, "watched", "MSSQLSIM_WATCHDOG=1")
	p.start(t)
	ready(ctx, t, p.db(t))
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	if !strings.Contains(p.out.String(), "SQL Server is terminating because of a system shutdown") {
		t.Errorf("the child did not stop cleanly:\n%s", p.out)
	}
}

// trio is an availability group of three processes.
type trio struct {
	t     *testing.T
	procs []*process
	reps  []server.Replica
}

func newTrio(ctx context.Context, t *testing.T) *trio {
	t.Helper()
	g := &trio{t: t}
	for i := range 3 {
		p := newProcess(t, "node-"+strconv.Itoa(i), "MSSQLSIM_SEED="+strconv.Itoa(i+1))
		p.start(t)
		g.procs = append(g.procs, p)
		g.reps = append(g.reps, server.Replica{
			Name: p.name, EndpointURL: "TCP://127.0.0.1:" + strconv.Itoa(p.endpointPort), EndpointPort: p.endpointPort, DB: p.db(t),
		})
	}
	for _, r := range g.reps {
		ready(ctx, t, r.DB)
	}
	if err := server.MakeGroup(ctx, g.reps, server.Group{Databases: []string{"d"}}); err != nil {
		t.Fatal(err)
	}
	g.run(ctx, 0, "ALTER AVAILABILITY GROUP ag1 SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 1)")
	g.run(ctx, 0, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY)")
	return g
}

func (g *trio) run(ctx context.Context, i int, statement string) {
	g.t.Helper()
	if _, err := g.reps[i].DB.ExecContext(ctx, statement); err != nil {
		g.t.Fatalf("%s on %s: %v", statement, g.reps[i].Name, err)
	}
}

// promote makes a survivor primary by the rule of field guide §5.2: the highest sequence
// number of a majority, then the engine's own check.
func (g *trio) promote(ctx context.Context, dead int) int {
	g.t.Helper()
	best, bestSequence := -1, int64(-1)
	var order []int
	for i := range g.reps {
		if i == dead {
			continue
		}
		var n int64
		if err := g.reps[i].DB.QueryRowContext(ctx, "SELECT sequence_number FROM sys.availability_groups WHERE name = 'ag1'").Scan(&n); err != nil {
			g.t.Fatalf("sequence number of %s: %v", g.reps[i].Name, err)
		}
		switch {
		case n > bestSequence:
			best, bestSequence, order = i, n, []int{i}
		case n == bestSequence:
			order = append(order, i)
		}
	}
	for _, i := range order {
		err := server.Failover(ctx, g.reps[i].DB, "ag1")
		if err == nil {
			if err := server.AwaitRole(ctx, g.reps[i].DB, "PRIMARY"); err != nil {
				g.t.Fatal(err)
			}
			return i
		}
		if server.Number(err) != 41142 {
			g.t.Fatalf("FAILOVER on %s: %v", g.reps[i].Name, err)
		}
	}
	g.t.Fatalf("no survivor of %s can be promoted; best %d with sequence %d", g.reps[dead].Name, best, bestSequence)
	return -1
}

// heal brings every replica back behind the primary.
func (g *trio) heal(ctx context.Context, primary int) {
	g.t.Helper()
	for i := range g.reps {
		if i == primary {
			continue
		}
		if err := server.Poll(ctx, g.reps[i].Name+" is SECONDARY", func(ctx context.Context) (bool, error) {
			_, err := g.reps[i].DB.ExecContext(ctx, "ALTER AVAILABILITY GROUP ag1 SET (ROLE = SECONDARY)")
			if err != nil {
				return false, err
			}
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			err = server.AwaitRole(short, g.reps[i].DB, "SECONDARY")
			return err == nil, err
		}); err != nil {
			g.t.Fatal(err)
		}
	}
	if err := server.AwaitSynchronized(ctx, g.reps[primary].DB, "ag1"); err != nil {
		g.t.Fatal(err)
	}
}

// rows reads the ids of the table on a replica.
func (g *trio) rows(ctx context.Context, i int) map[int]bool {
	g.t.Helper()
	out := map[int]bool{}
	if err := server.Poll(ctx, "the table of "+g.reps[i].Name+" can be read", func(ctx context.Context) (bool, error) {
		rows, err := g.reps[i].DB.QueryContext(ctx, "SELECT id FROM d.dbo.t")
		if err != nil {
			return false, err
		}
		defer func() { _ = rows.Close() }()
		clear(out)
		for rows.Next() {
			var id int
			if err := rows.Scan(&id); err != nil {
				return false, err
			}
			out[id] = true
		}
		return rows.Err() == nil, rows.Err()
	}); err != nil {
		g.t.Fatal(err)
	}
	return out
}

func TestGroup_KillAtRandomPointsLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	ctx := limit(t)
	g := newTrio(ctx, t)
	primary := 0
	var next atomic.Int64
	acknowledged := map[int]bool{}
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		victim := random.IntN(3)
		if round == 0 {
			victim = primary
		}
		after := 5 + random.IntN(40)
		wrote := make(chan struct{})
		var writer sync.WaitGroup
		stop, cancel := context.WithCancel(ctx)
		writer.Go(func() {
			for n := 0; stop.Err() == nil; n++ {
				if n == after {
					close(wrote)
				}
				id := int(next.Add(1))
				if _, err := g.reps[primary].DB.ExecContext(stop, fmt.Sprintf("INSERT INTO d.dbo.t VALUES (%d)", id)); err == nil {
					acknowledged[id] = true
				} else if victim == primary {
					break
				}
			}
		})
		select {
		case <-wrote:
		case <-ctx.Done():
			t.Fatal("the writer came to no end")
		}
		t.Logf("round %d: kill %s (primary is %s) after %d writes", round, g.reps[victim].Name, g.reps[primary].Name, after)
		g.procs[victim].kill()
		if victim != primary {
			// With one secondary left and a commit quorum of 1 the writes go on.
			before := next.Load()
			if err := server.Poll(ctx, "writes go on without "+g.reps[victim].Name, func(ctx context.Context) (bool, error) {
				_, err := g.reps[primary].DB.ExecContext(ctx, "SELECT 1")
				return next.Load() > before+2, err
			}); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		cancel()
		writer.Wait()
		if victim == primary {
			primary = g.promote(ctx, victim)
		}
		g.procs[victim].start(t)
		ready(ctx, t, g.reps[victim].DB)
		g.heal(ctx, primary)
		for i := range g.reps {
			got := g.rows(ctx, i)
			for id := range acknowledged {
				if !got[id] {
					t.Errorf("round %d: %s has lost the acknowledged row %d", round, g.reps[i].Name, id)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rows were acknowledged in %d rounds", len(acknowledged), rounds)
}

func TestGroup_PlannedFailoverMovesThePrimary(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	g := newTrio(ctx, t)
	g.run(ctx, 0, "INSERT INTO d.dbo.t VALUES (1)")
	g.run(ctx, 0, "ALTER AVAILABILITY GROUP ag1 OFFLINE")
	if err := server.AwaitRole(ctx, g.reps[0].DB, "RESOLVING"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.reps[0].DB.ExecContext(ctx, "INSERT INTO d.dbo.t VALUES (2)"); err == nil {
		t.Error("a replica that was taken offline takes a write")
	}
	if _, err := g.reps[2].DB.ExecContext(ctx, "ALTER AVAILABILITY GROUP ag1 FAILOVER"); server.Number(err) != 47104 {
		t.Errorf("FAILOVER without the key: %v, want 47104", err)
	}
	if err := server.Failover(ctx, g.reps[2].DB, "ag1"); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitRole(ctx, g.reps[2].DB, "PRIMARY"); err != nil {
		t.Fatal(err)
	}
	g.heal(ctx, 2)
	g.run(ctx, 2, "INSERT INTO d.dbo.t VALUES (3)")
	for i := range g.reps {
		if err := server.Poll(ctx, g.reps[i].Name+" has both rows", func(ctx context.Context) (bool, error) {
			got := g.rows(ctx, i)
			return got[1] && got[3] && !got[2], nil
		}); err != nil {
			t.Error(err)
		}
	}
}
