//go:build linux

package instance

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper starts sqlservr and collects every process that ends below this one.
// As process 1 the manager inherits orphans, so that it cannot wait for its child
// by number alone: it waits for any, and keeps what it started apart.
type reaper struct {
	mu       sync.Mutex
	children map[int]*child
	// all is true for process 1: a kill then reaches every process of the container.
	all bool
}

func newReaper() *reaper {
	return &reaper{children: map[int]*child{}, all: os.Getpid() == 1}
}

// child is one run of sqlservr.
type child struct {
	r   *reaper
	pid int
	// ended is closed when the process was collected; status is valid after that.
	ended  chan struct{}
	status syscall.WaitStatus
	gone   bool // guarded by r.mu
}

// start runs argv in its own process group. files are its descriptors from 0 on.
func (r *reaper) start(argv, env []string, dir string, files []*os.File) (*child, error) {
	r.mu.Lock() // held until the child is known, so that reap cannot miss its end
	defer r.mu.Unlock()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: dir, Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	c := &child{r: r, pid: p.Pid, ended: make(chan struct{})}
	r.children[c.pid] = c
	_ = p.Release() // collected by reap, not by p.Wait
	return c, nil
}

// reap collects all processes that have ended. It is called on every SIGCHLD; one
// signal may stand for several ends.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		c := r.children[pid]
		if c == nil || (!status.Exited() && !status.Signaled()) {
			continue
		}
		delete(r.children, pid)
		c.status, c.gone = status, true
		close(c.ended)
	}
}

// signal sends sig to sqlservr's first process, which passes a SIGTERM on to its own child (FG 7.1).
func (c *child) signal(sig syscall.Signal) error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.gone {
		return os.ErrProcessDone
	}
	return syscall.Kill(c.pid, sig)
}

// kill ends sqlservr at once: its process group, because sqlservr is two processes
// (FG 7.1), and as process 1 everything else in the container too.
func (c *child) kill() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if !c.gone {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
	}
	if c.r.all {
		_ = syscall.Kill(-1, syscall.SIGKILL) // does not reach process 1 itself
	}
}

// sweep kills what is left of sqlservr's process group after its first process has
// ended: when that is killed, its child lives on (FG 7.1), with the volume's lock. Only
// in a container does the end of process 1 do the same.
func (c *child) sweep() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	_ = syscall.Kill(-c.pid, syscall.SIGKILL) // ESRCH when nobody is left, the usual case
}

// exitCode is the code that a shell would show; only after ended.
func (c *child) exitCode() int {
	if c.status.Signaled() {
		return 128 + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}

// describe says in words how it ended; only after ended.
func (c *child) describe() string {
	if c.status.Signaled() {
		return fmt.Sprintf("ended by signal %d (%s)", int(c.status.Signal()), c.status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", c.status.ExitStatus())
}

// becomeSubreaper lets orphans below this process come to it where it is not
// process 1 (a shared process namespace, a test).
func becomeSubreaper() error {
	if os.Getpid() == 1 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return nil
}
