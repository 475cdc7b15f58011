package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// enterScript puts the shell into the cgroups of its first argument before it
// becomes the command, so that no process of ours ever runs outside of them.
const enterScript = `for d in $1; do echo $$ > "$d/cgroup.procs" || exit 97; done; shift; exec "$@"`

// command is a process to start and keep running after this program ends.
type command struct {
	// name is the component's, see process.Name.
	name string
	argv []string
	// cgroups are directories.
	cgroups []string
	// inside is the process whose network and mount namespaces to enter; 0 for
	// the machine's own.
	inside int
	// log gets stdout and stderr, appended.
	log string
}

func (c command) args() []string {
	argv := c.argv
	if c.inside != 0 {
		argv = append(enterNamespaces(c.inside), argv...)
	}
	return append([]string{"/bin/sh", "-c", enterScript, "sh", strings.Join(c.cgroups, " ")}, argv...)
}

// enterNamespaces is the prefix that runs a command in a node's namespaces. It
// is not "ip netns exec", which mounts a new /sys without the cgroups.
func enterNamespaces(pid int) []string {
	return []string{"nsenter", "--target", strconv.Itoa(pid), "--net", "--mount", "--wd=/", "--"}
}

// spawn starts the command in a session of its own.
func spawn(c command) (process, error) {
	if err := os.MkdirAll(filepath.Dir(c.log), 0o755); err != nil {
		return process{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return process{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	defer log.Close()
	args := c.args()
	// The process has to outlive this program: no context ends it, Down does.
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return process{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	start, err := startTime(cmd.Process.Pid)
	// Reap it, should it end while this program still runs. Its result is read
	// from the log and from /proc by whoever waits for the component.
	go func() { _ = cmd.Wait() }()
	if err != nil {
		return process{}, fmt.Errorf("start %s: it ended at once (%w), see %s", c.name, err, c.log)
	}
	return process{Name: c.name, PID: cmd.Process.Pid, Start: start}, nil
}

// alive tells whether p still runs; a zombie does not.
func (p process) alive() bool {
	if p.PID <= 1 {
		return false
	}
	stat, err := procStat(p.PID)
	return err == nil && stat.start == p.Start && stat.state != 'Z' && stat.state != 'X'
}

// kill ends p and nothing else: it is silent when p has gone, whoever has its
// pid now.
func (p process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

type stat struct {
	state byte
	start uint64
}

func startTime(pid int) (uint64, error) {
	s, err := procStat(pid)
	return s.start, err
}

func procStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("read the start time of pid %d: %w", pid, err)
	}
	return parseStat(data)
}

// parseStat reads state and starttime of proc_pid_stat(5). The command's name
// may hold blanks and parentheses, hence the search for the last one.
func parseStat(data []byte) (stat, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("parse a process's stat: no command name in %q", data)
	}
	f := strings.Fields(string(data[end+1:]))
	// Field 3 of the manual page is f[0], field 22 is f[19].
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("parse a process's stat: too short: %q", data)
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parse a process's start time: %w", err)
	}
	return stat{state: f[0][0], start: start}, nil
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the machine's boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// run executes a short command and returns its output; the error holds it too.
func run(ctx context.Context, stdin string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(tail(out, 2000)))
	}
	return string(out), nil
}

func tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
	}
	return string(b)
}

// waitFor polls until cond has no error, the context ends, or gone reports an
// error that no waiting will mend. The last error of cond is in the result.
func waitFor(ctx context.Context, limit time.Duration, what string, gone func() error, cond func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := cond(ctx)
		if err == nil {
			return nil
		}
		if gone != nil {
			if g := gone(); g != nil {
				return fmt.Errorf("wait for %s: %w", what, g)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: not there after %s: %w", what, limit, err)
		case <-tick.C:
		}
	}
}

// logTail is the end of a component's log, for an error message.
func logTail(path string) string {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "(no log)"
	}
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(tail(data, 6000)), "\n")
	if len(lines) > 12 {
		lines = lines[len(lines)-12:]
	}
	return strings.Join(lines, "\n")
}
