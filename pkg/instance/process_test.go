//go:build linux

package instance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// The test binary plays three parts, so that signals, process groups and inherited
// locks are real: the tests, the manager (with this variable), and, under the name
// sqlservr, a server that only knows how to start and end.
const asManager = "INSTANCE_TEST_MANAGER"

// How the fake server behaves.
const serverMode = "FAKE_SQLSERVR_MODE"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "sqlservr":
		os.Exit(fakeServer(os.Getenv(serverMode)))
	case os.Getenv(asManager) != "":
		cmd := NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.Execute()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(CodeOf(err))
	}
	os.Exit(m.Run())
}

// fakeServer writes what it was started with, then does what mode says.
func fakeServer(mode string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	started := map[string]any{"pid": os.Getpid(), "args": os.Args, "env": os.Environ()}
	b, err := json.Marshal(started)
	if err == nil {
		err = os.WriteFile("started.new", b, 0o600)
	}
	if err == nil {
		err = os.Rename("started.new", "started.json")
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("sqlservr: started")
	kind, arg, _ := strings.Cut(mode, ":")
	switch kind {
	case "exit":
		code, _ := strconv.Atoi(arg)
		return code
	case "crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "orphan":
		// A grandchild whose parent ends first: it comes to the manager, which must collect it.
		out, err := exec.Command("/bin/sh", "-c", "sleep 0.1 & echo $!").Output() //nolint:gosec // fixed text
		if err == nil {
			err = os.WriteFile("orphan", out, 0o600)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	for sig := range signals {
		fmt.Println("sqlservr: got", sig)
		switch {
		case sig == syscall.SIGTERM && kind == "stubborn":
		case sig == syscall.SIGTERM && kind == "stop-exit":
			code, _ := strconv.Atoi(arg)
			return code
		case sig == syscall.SIGTERM:
			return 0
		}
	}
	return 1
}

// managerRun is one manager process under test.
type managerRun struct {
	t    *testing.T
	dir  string
	o    Options
	cmd  *exec.Cmd
	logs *lineBuffer
	out  *lineBuffer
	done chan struct{}
	code int
}

type lineBuffer struct {
	mu    sync.Mutex
	lines []string
}

func (b *lineBuffer) add(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
}

func (b *lineBuffer) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.lines...)
}

func (b *lineBuffer) has(part string) bool {
	for _, l := range b.all() {
		if strings.Contains(l, part) {
			return true
		}
	}
	return false
}

const (
	testSAPassword       = "Sa-Secret-0815!"
	testOperatorPassword = "Op-Secret-4711!"
)

// prepareRun makes a data directory, secrets and a configuration.
func prepareRun(t *testing.T, cfg Config) (string, Options) {
	t.Helper()
	dir := t.TempDir()
	o := DefaultOptions()
	o.ConfigFile = filepath.Join(dir, ConfigKey)
	o.DataDir = filepath.Join(dir, "mssql")
	o.Program = filepath.Join(dir, "sqlservr")
	o.SAPasswordFile = filepath.Join(dir, "sa")
	o.OperatorPasswordFile = filepath.Join(dir, "operator")
	o.TLSDir = filepath.Join(dir, "tls")
	o.ProbeAddress, o.ManagerAddress = "127.0.0.1:0", "127.0.0.1:0"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.MkdirAll(o.DataDir, 0o770), os.MkdirAll(o.TLSDir, 0o770), os.Symlink(self, o.Program),
		os.WriteFile(o.ConfigFile, []byte(text), 0o600),
		os.WriteFile(o.SAPasswordFile, []byte(testSAPassword+"\n"), 0o600),
		os.WriteFile(o.OperatorPasswordFile, []byte(testOperatorPassword), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, o
}

func standalone(t *testing.T) Config {
	t.Helper()
	i := &v1alpha1.SQLServerInstance{}
	i.Namespace, i.Name, i.UID = "prod", "db", "uid-db"
	i.Spec.AcceptEula, i.Spec.Edition, i.Spec.Port = "Y", "Developer", freePort(t)
	i.Spec.TerminationGracePeriodSeconds = 30
	return ConfigForInstance(i, 0)
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

func startRun(t *testing.T, dir string, o Options, mode string, pod string) *managerRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &managerRun{t: t, dir: dir, o: o, logs: &lineBuffer{}, out: &lineBuffer{}, done: make(chan struct{})}
	args := []string{
		"run", "--config", o.ConfigFile, "--data-dir", o.DataDir, "--sqlservr", o.Program,
		"--sa-password-file", o.SAPasswordFile, "--operator-password-file", o.OperatorPasswordFile,
		"--tls-dir", o.TLSDir, "--probe-address", o.ProbeAddress, "--manager-address", o.ManagerAddress,
	}
	if o.Kubeconfig != "" {
		args = append(args, "--kubeconfig", o.Kubeconfig)
	}
	r.cmd = exec.Command(self, args...) //nolint:gosec // the test binary itself
	r.cmd.Env = append(os.Environ(), asManager+"=1", serverMode+"="+mode,
		"POD_NAME="+pod, "POD_NAMESPACE=prod", "POD_UID=pod-uid-1", "MSSQL_SA_PASSWORD=must-not-be-inherited", "TZ=Europe/Berlin")
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	collect := func(from io.Reader, to *lineBuffer) {
		s := bufio.NewScanner(from)
		for s.Scan() {
			to.add(s.Text())
		}
	}
	readers.Go(func() { collect(stdout, r.out) })
	readers.Go(func() { collect(stderr, r.logs) })
	go func() {
		defer close(r.done)
		readers.Wait()
		_ = r.cmd.Wait()
		r.code = r.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		select {
		case <-r.done:
		default:
			r.killAll()
			<-r.done
		}
		if t.Failed() {
			t.Logf("manager's log:\n%s\noutput:\n%s", strings.Join(r.logs.all(), "\n"), strings.Join(r.out.all(), "\n"))
		}
	})
	return r
}

// killAll ends the manager and its server, which outlives it outside a container.
func (r *managerRun) killAll() {
	if s, ok := r.tryStarted(); ok {
		_ = syscall.Kill(s.PID, syscall.SIGKILL)
	}
	_ = r.cmd.Process.Kill()
}

type startedServer struct {
	PID  int      `json:"pid"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

func (r *managerRun) tryStarted() (startedServer, bool) {
	var s startedServer
	b, err := os.ReadFile(filepath.Join(r.o.DataDir, "started.json"))
	return s, err == nil && json.Unmarshal(b, &s) == nil
}

// started waits for the server and says what it was started with.
func (r *managerRun) started() startedServer {
	r.t.Helper()
	var s startedServer
	eventually(r.t, "the server starts", func() bool {
		var ok bool
		s, ok = r.tryStarted()
		return ok
	})
	return s
}

// ended waits for the manager's end and returns its exit code.
func (r *managerRun) ended() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		r.t.Fatal("the manager did not end")
	}
	return r.code
}

// address of a listener from the manager's first log line.
func (r *managerRun) address(key string) string {
	r.t.Helper()
	var address string
	eventually(r.t, "the manager says where it listens", func() bool {
		for _, line := range r.logs.all() {
			var entry map[string]any
			if json.Unmarshal([]byte(line), &entry) == nil {
				if a, ok := entry[key].(string); ok {
					address = a
					return true
				}
			}
		}
		return false
	})
	return address
}

// get asks a probe.
func (r *managerRun) get(path string) (int, string) {
	r.t.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + r.address("probes") + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("did not happen in 30 s: %s", what)
		case <-tick.C:
		}
	}
}

func TestRun_TheServersEndIsTheManagersEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, mode string
		act        func(*managerRun)
		want       int
	}{
		{"a server that exits passes its code on", "exit:9", nil, 9},
		{"a server that exits with 0 ends the manager with 0", "exit:0", nil, 0},
		{"a server that crashes gives 128 and the signal", "crash", nil, 128 + int(syscall.SIGKILL)},
		{"SIGTERM stops it cleanly", "run", func(r *managerRun) { r.signal(syscall.SIGTERM) }, 0},
		{"SIGINT stops it cleanly", "run", func(r *managerRun) { r.signal(syscall.SIGINT) }, 0},
		{"a server that ends badly while stopping passes its code on", "stop-exit:5", func(r *managerRun) { r.signal(syscall.SIGTERM) }, 5},
		{"a server that does not stop is killed", "stubborn", func(r *managerRun) { r.signal(syscall.SIGTERM) }, ExitStopKill},
		{"a server killed by somebody else gives its signal", "run", func(r *managerRun) {
			if err := syscall.Kill(r.started().PID, syscall.SIGKILL); err != nil {
				r.t.Fatal(err)
			}
		}, 128 + int(syscall.SIGKILL)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := standalone(t)
			if tt.want == ExitStopKill {
				cfg.StopTimeout.Duration = 500 * time.Millisecond
			}
			dir, o := prepareRun(t, cfg)
			r := startRun(t, dir, o, tt.mode, "db-0")
			if tt.act != nil {
				r.started()
				eventually(t, "the server is ready for signals", func() bool { return r.out.has("sqlservr: started") })
				tt.act(r)
			}
			if got := r.ended(); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
			if s := r.started(); syscall.Kill(s.PID, 0) == nil {
				t.Error("the server outlived its manager")
			}
		})
	}
}

func (r *managerRun) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

func TestRun_PassesOtherSignalsAndOutputOn(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	r := startRun(t, dir, o, "run", "db-0")
	eventually(t, "the server is ready for signals", func() bool { return r.out.has("sqlservr: started") })
	r.signal(syscall.SIGUSR1)
	eventually(t, "the server gets SIGUSR1", func() bool { return r.out.has("sqlservr: got user defined signal 1") })
	r.signal(syscall.SIGTERM)
	if got := r.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if !r.out.has("sqlservr: got terminated") {
		t.Error("the server was not told to stop")
	}
}

func TestRun_CollectsOrphans(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	r := startRun(t, dir, o, "orphan", "db-0")
	var pid int
	eventually(t, "the orphan is known", func() bool {
		b, err := os.ReadFile(filepath.Join(o.DataDir, "orphan"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	eventually(t, "the orphan is gone, not a zombie", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return os.IsNotExist(err)
	})
	r.signal(syscall.SIGTERM)
	if got := r.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestRun_TheVolumeIsLockedAsLongAsTheServerLives(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	r := startRun(t, dir, o, "run", "db-0")
	server := r.started()
	locked := func() bool {
		f, err := os.OpenFile(filepath.Join(o.stateDir(), lockName), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
	}
	if !locked() {
		t.Fatal("nobody holds the lock")
	}
	// The manager dies without a word; outside a container its server lives on.
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := waitGone(r.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if !locked() {
		t.Error("the lock went with the manager although its server lives")
	}
	if err := syscall.Kill(server.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lock goes with the server", func() bool { return !locked() })
}

// waitGone waits until the process has ended; its parent may not have collected it yet.
func waitGone(pid int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil
		}
		if i := bytes.LastIndexByte(b, ')'); i >= 0 && len(b) > i+2 && b[i+2] == 'Z' {
			return nil
		}
		<-tick.C
	}
	return fmt.Errorf("process %d is still there", pid)
}

func TestRun_SecretsAreWhereTheyBelong(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	r := startRun(t, dir, o, "run", "db-0")
	first := r.started()
	wantSA := "MSSQL_SA_PASSWORD=" + testSAPassword
	env := strings.Join(first.Env, "\n")
	for _, want := range []string{wantSA, "ACCEPT_EULA=Y", "MSSQL_PID=Developer", "TZ=Europe/Berlin"} {
		if !strings.Contains(env+"\n", want+"\n") {
			t.Errorf("first start lacks %q", want)
		}
	}
	for _, process := range []int{r.cmd.Process.Pid, first.PID} {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
		if err != nil {
			t.Fatal(err)
		}
		if holdsPassword(cmdline) {
			t.Errorf("a password is an argument: %q", cmdline)
		}
	}
	manager, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if holdsPassword(manager) {
		t.Error("a password is in the manager's environment")
	}
	if strings.Contains(env, testOperatorPassword) || strings.Contains(env, "must-not-be-inherited") {
		t.Error("the server's environment holds a password that is not its own")
	}
	r.signal(syscall.SIGTERM)
	if got := r.ended(); got != 0 {
		t.Fatalf("exit code %d", got)
	}
	// Now there is a master, and sa has logged in once.
	for _, err := range []error{
		os.MkdirAll(filepath.Join(o.DataDir, "data"), 0o770),
		os.WriteFile(filepath.Join(o.DataDir, "data", "master.mdf"), nil, 0o600),
		firstStartDone(o),
		os.Remove(filepath.Join(o.DataDir, "started.json")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	again := startRun(t, dir, o, "run", "db-0")
	if env := strings.Join(again.started().Env, "\n"); strings.Contains(env, "PASSWORD") {
		t.Errorf("a later start passes a password")
	}
	again.signal(syscall.SIGTERM)
	again.ended()
	for _, run := range []*managerRun{r, again} {
		for _, line := range append(run.logs.all(), run.out.all()...) {
			if strings.Contains(line, testSAPassword) || strings.Contains(line, testOperatorPassword) {
				t.Errorf("a password is in the log: %s", line)
			}
		}
	}
}

func holdsPassword(b []byte) bool {
	return bytes.Contains(b, []byte(testSAPassword)) || bytes.Contains(b, []byte(testOperatorPassword))
}

func TestRun_ProbesOfAServerThatAcceptsNoLogins(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	r := startRun(t, dir, o, "run", "db-0")
	r.started()
	if code, body := r.get("/live"); code != http.StatusOK {
		t.Errorf("/live: %d %s: a server that only does not accept logins must not be restarted", code, body)
	}
	for _, path := range []string{"/startup", "/ready"} {
		if code, body := r.get(path); code != http.StatusServiceUnavailable || body == "" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, body := r.get("/metrics"); code != http.StatusOK || !strings.Contains(body, `mssql_instance_phase{phase="starting"} 1`) {
		t.Errorf("/metrics: %d %s", code, body)
	}
	if code, _ := r.get("/other"); code != http.StatusNotFound {
		t.Errorf("/other: %d", code)
	}
}

func TestRun_SaysWhyItCannotStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(t *testing.T, o Options)
		code  int
		want  string
	}{
		{"no configuration", func(t *testing.T, o Options) { remove(t, o.ConfigFile) }, ExitConfig, "read the configuration"},
		{"no volume", func(t *testing.T, o Options) { remove(t, o.DataDir) }, ExitVolume, "is the volume mounted?"},
		{"a password that breaks the policy", func(t *testing.T, o Options) { write(t, o.SAPasswordFile, "short") }, ExitConfig, "8 to 128"},
		{"no password", func(t *testing.T, o Options) { remove(t, o.SAPasswordFile) }, ExitConfig, "read the password"},
		{"no server", func(t *testing.T, o Options) { remove(t, o.Program) }, ExitStart, "no such file"},
		{"a memory that cannot be read", func(t *testing.T, o Options) {
			if err := os.MkdirAll(o.stateDir(), 0o770); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(o.stateDir(), memoryName), "{")
		}, ExitVolume, "what earlier runs promised"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, o := prepareRun(t, standalone(t))
			tt.spoil(t, o)
			r := startRun(t, dir, o, "run", "db-0")
			if got := r.ended(); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			if !r.logs.has(tt.want) {
				t.Errorf("the log does not say %q", tt.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRun_WritesConfAndCertificatesBeforeTheServerStarts(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	write(t, filepath.Join(o.TLSDir, "tls.crt"), "certificate")
	write(t, filepath.Join(o.TLSDir, "tls.key"), "key")
	r := startRun(t, dir, o, "run", "db-0")
	r.started()
	conf, err := os.ReadFile(filepath.Join(o.DataDir, "mssql.conf"))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(o.DataDir, "tls", "tls.key")
	if !strings.Contains(string(conf), "tlskey = "+key+"\n") {
		t.Errorf("mssql.conf: %s", conf)
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
}
