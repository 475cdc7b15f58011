package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Variables that make the process two, as the product is: a parent that watches and a
// child that serves (field guide §7.1). The child outlives a parent that is killed.
const (
	watchdogVariable = "MSSQLSIM_WATCHDOG"
	childVariable    = "MSSQLSIM_WATCHDOG_CHILD"
)

// isWatchdog tells whether this process is the parent of two.
func isWatchdog(getenv func(string) string) bool {
	return accepted(getenv(watchdogVariable)) && getenv(childVariable) == ""
}

// watch runs the child, passes signals on, and ends with its exit code.
func watch(args, environ []string, stdout, stderr io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(stderr, "sqlservr: find the own program: %v\n", err)
		return exitRefused
	}
	child := exec.Command(self, args...)
	child.Env = append(environ, childVariable+"=1")
	child.Stdout, child.Stderr = stdout, stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		fmt.Fprintf(stderr, "sqlservr: start the child: %v\n", err)
		return exitRefused
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = child.Process.Signal(s)
		case err := <-done:
			return childCode(err)
		}
	}
}

func childCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitOK
	case !errors.As(err, &exit):
		return exitRefused
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exitRefused
}
