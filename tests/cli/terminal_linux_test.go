package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File

	mu      sync.Mutex
	seen    bytes.Buffer
	changed chan struct{}
	done    chan struct{}
}

// startTerminal starts a program whose three streams are one new terminal.
func startTerminal(ctx context.Context, columns int, dir string, env []string, name string, args ...string) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number of the terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(columns)}); err != nil {
		return nil, fmt.Errorf("size of the terminal: %w", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	t := &terminal{master: master, changed: make(chan struct{}), done: make(chan struct{})}
	t.cmd = exec.CommandContext(ctx, name, args...)
	t.cmd.Dir, t.cmd.Env = dir, env
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, slave
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	go t.read()
	return t, nil
}

func (t *terminal) read() {
	defer close(t.done)
	b := make([]byte, 4096)
	for {
		n, err := t.master.Read(b)
		t.mu.Lock()
		t.seen.Write(b[:n])
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return // EIO: the program has closed the terminal
		}
	}
}

// text is everything that was shown so far.
func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.String()
}

func (t *terminal) send(s string) error {
	_, err := io.WriteString(t.master, s)
	return err
}

// await returns when the text after the first `from` bytes holds want.
func (t *terminal) await(want string, from int) error {
	return t.until(fmt.Sprintf("%q", want), from, func(s string) bool { return strings.Contains(s, want) })
}

// awaitQuestion returns when a question stands at the end of what is shown.
func (t *terminal) awaitQuestion() error {
	return t.until("a question", 0, func(s string) bool {
		return strings.HasSuffix(s, "[y/N] ") || strings.HasSuffix(s, ": ")
	})
}

func (t *terminal) until(what string, from int, match func(string) bool) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		t.mu.Lock()
		s, next := t.seen.String(), t.changed
		t.mu.Unlock()
		s = s[min(from, len(s)):]
		if match(ansi.ReplaceAllString(s, "")) {
			return nil
		}
		select {
		case <-next:
		case <-deadline.C:
			return fmt.Errorf("%s was not shown within %s; shown: %q", what, patience, s)
		}
	}
}

// wait gives the exit status once the program has ended.
func (t *terminal) wait() int {
	code := exitCode(t.cmd.Wait())
	select {
	case <-t.done:
	case <-time.After(5 * time.Second): // a child of the program still holds the terminal
	}
	_ = t.master.Close()
	return code
}

// cmdTerminal: `terminal COLUMNS CODE [answer TEXT] program args…` runs a program on a
// terminal; with answer, TEXT and Enter are typed once a question is shown.
func cmdTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal COLUMNS CODE [answer TEXT] program [args…]")
	}
	columns, want, args := number(ts, args[0]), number(ts, args[1]), args[2:]
	typed, asks := "", false
	if args[0] == "answer" {
		typed, asks, args = args[1], true, args[2:]
	}
	path, err := lookPath(ts, args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	env := environment(ts)
	if ts.Getenv("TERM") == "" {
		env = append(env, "TERM=xterm")
	}
	t, err := startTerminal(ctx, columns, ts.MkAbs("."), env, path, args[1:]...)
	ts.Check(err)
	if asks {
		if err := errors.Join(t.awaitQuestion(), t.send(typed+"\r")); err != nil {
			ts.Fatalf("%v", err)
		}
	}
	got := t.wait()
	_, _ = io.WriteString(ts.Stdout(), strings.ReplaceAll(t.text(), "\r\n", "\n"))
	if got != want {
		ts.Fatalf("exit status %d, want %d; shown: %s", got, want, t.text())
	}
}

func TestTerminal_RunsAndAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	term, err := startTerminal(ctx, 77, t.TempDir(), os.Environ(), "/bin/sh", "-c", "stty size; read x; echo got-$x; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(term.await("40 77", 0), term.send("abc\r"), term.await("got-abc", 0)); err != nil {
		t.Error(err)
	}
	if code := term.wait(); code != 3 {
		t.Errorf("exit status %d", code)
	}
}
