package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// Exit codes. Every refusal to start is 1, as in the image.
const (
	exitOK      = 0
	exitRefused = 1
)

// run is the whole process; it returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	s, err := readSettings(args, environ, time.Now())
	if err != nil {
		fmt.Fprintf(stderr, "sqlservr: %v\n", err)
		return exitRefused
	}
	if s.printVersion {
		fmt.Fprintf(stdout, "Simulated Microsoft SQL Server for tests, major version %d %s\n", s.major, s.version)
		return exitOK
	}
	if problem := refusal(&s); problem != "" {
		fmt.Fprintln(stderr, problem)
		return exitRefused
	}
	log, err := openErrorLog(s.errorLog, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "sqlservr: Error: the error log could not be opened: %v\n", err)
		return exitRefused
	}
	defer func() { _ = log.Close() }()

	name, cut := s.serverName, false
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			fmt.Fprintf(stderr, "sqlservr: read the host name: %v\n", err)
			return exitRefused
		}
		name, cut = serverName(host)
	}
	first := isNew(s.root)
	if first {
		if problem := passwordProblem(s.saPassword); problem != "" {
			line(log, "Server", "ERROR: Unable to set system administrator password: "+problem+".")
			return exitRefused
		}
	}
	cert, err := certificate(&s)
	if err != nil {
		line(log, "Server", err.Error())
		return exitRefused
	}
	if cut {
		line(log, "Server", fmt.Sprintf("The host name has more than %d characters; the server name is cut to %s.", maxServerName, name))
	}

	if !pause(ctx, s.startTime) {
		return exitOK // asked to stop while starting
	}
	srv, err := server.Start(serverConfig(&s, name, cert, log))
	if err != nil {
		line(log, "Server", fmt.Sprintf("The instance could not start: %v", err))
		return exitRefused
	}
	if first {
		if err := firstStart(ctx, srv, &s); err != nil {
			line(log, "Server", fmt.Sprintf("MSSQL_DB or MSSQL_USER could not be created: %v", err))
		}
	}
	if s.agent {
		line(log, "Server", "SQL Server Agent is enabled.")
	}
	return wait(ctx, srv, &s)
}

// wait runs until a signal or until the instance ends by itself.
func wait(ctx context.Context, srv *server.Server, s *settings) int {
	select {
	case <-ctx.Done():
		time.Sleep(s.stopTime)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := srv.Stop(stop); err != nil {
			return exitRefused
		}
		return exitOK
	case e := <-srv.Done():
		srv.Kill()
		return e.Code
	}
}

// pause waits; false means that the process was asked to stop meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusal says why the process must not start, before it touches the volume.
func refusal(s *settings) string {
	if !s.eula {
		return "The SQL Server End-User License Agreement (EULA) must be accepted before SQL Server can start.\n" +
			"Accept it with the environment variable ACCEPT_EULA=Y, the argument --accept-eula or accepteula = Y in mssql.conf.\n" +
			"(This is a simulated server for tests, which asks as the product does.)"
	}
	memory := s.memoryMB
	if memory == 0 {
		memory = machineMemoryMB()
	}
	if memory != 0 && memory < minMemoryMB {
		return fmt.Sprintf("sqlservr: This program requires a machine with at least %d megabytes of memory. This one has %d.", minMemoryMB, memory)
	}
	s.memoryMB = memory
	system := filepath.Join(s.root, ".system")
	for _, dir := range []string{system, s.dataDir, s.logDir, s.backupDir, filepath.Join(s.root, "secrets")} {
		if err := os.MkdirAll(dir, 0o770); err != nil {
			return fmt.Sprintf("sqlservr: Error: The system directory [%s] could not be created: %v", dir, err)
		}
	}
	probe, err := os.CreateTemp(system, "write-*")
	if err != nil {
		return fmt.Sprintf("sqlservr: Error: The system directory [%s] is not writable: %v", system, err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return ""
}

// isNew tells whether no instance was ever started on the volume.
func isNew(root string) bool {
	names, err := os.ReadDir(filepath.Join(root, server.StoreDir))
	if err != nil {
		return true
	}
	for _, n := range names {
		if info, err := n.Info(); err == nil && info.Size() > 0 {
			return false
		}
	}
	return true
}

func certificate(s *settings) (tls.Certificate, error) {
	if s.tlsCert == "" && s.tlsKey == "" {
		return tls.Certificate{}, nil
	}
	c, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
	if err != nil {
		return c, fmt.Errorf("TLS could not be initialised from network.tlscert and network.tlskey: %w", err)
	}
	return c, nil
}

func serverConfig(s *settings, name string, cert tls.Certificate, log io.Writer) server.Config {
	limit := s.memoryMB * 80 / 100 // the default share of the container's memory
	if s.memoryLimitMB > 0 {
		limit = s.memoryLimitMB
	}
	config := server.Config{
		Dir:         s.root,
		Address:     net.JoinHostPort(s.ip, strconv.Itoa(s.port)),
		Certificate: cert, ForceEncryption: s.forceEncryption, ForceStrict: s.forceStrict,
		ErrorLog: log,
		Engine: engine.Config{
			ServerName: name, MachineName: name, Seed: s.seed, SAPassword: s.saPassword,
			Major: s.major, Version: s.version, Edition: s.edition, HADR: s.hadr, Collation: s.collation,
			DataPath: s.dataDir, LogPath: s.logDir, BackupPath: s.backupDir,
			MemoryKB: int64(limit) << 10, ProcessID: os.Getpid(),
			Readings: s.readings, Timings: s.timings,
		},
	}
	if s.dacPort > 0 {
		config.Admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.dacPort))
	}
	return config
}

// firstStart makes the database and the login of MSSQL_DB, MSSQL_USER and MSSQL_PASSWORD.
func firstStart(ctx context.Context, srv *server.Server, s *settings) error {
	var batch []string
	quote := func(n string) string { return "[" + strings.ReplaceAll(n, "]", "]]") + "]" }
	if s.database != "" {
		batch = append(batch, "CREATE DATABASE "+quote(s.database))
	}
	if s.user != "" && s.userPassword != "" {
		batch = append(batch, "CREATE LOGIN "+quote(s.user)+" WITH PASSWORD = N'"+strings.ReplaceAll(s.userPassword, "'", "''")+"'",
			"ALTER SERVER ROLE sysadmin ADD MEMBER "+quote(s.user))
	}
	if len(batch) == 0 {
		return nil
	}
	session, err := tsql.NewSession(srv.Host(), engine.LoginRequest{User: "sa", Password: s.saPassword, AppName: "setup"})
	if err != nil {
		return err
	}
	defer session.Close()
	for _, b := range batch {
		var results tsql.Results
		if err := session.Execute(ctx, b, nil, &results); err != nil {
			return err
		}
		if err := results.Err(); err != nil {
			return err
		}
	}
	return nil
}

// keptLogs is how many old error logs stay beside the current one.
const keptLogs = 6

// log is the error log file together with stdout, where the image shows it too.
type log struct {
	io.Writer
	f *os.File
}

func (l *log) Close() error { return l.f.Close() }

// openErrorLog moves the old logs on by one and opens a new one.
func openErrorLog(name string, stdout io.Writer) (*log, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o770); err != nil {
		return nil, err
	}
	for i := keptLogs; i > 0; i-- {
		from := name
		if i > 1 {
			from = name + "." + strconv.Itoa(i-1)
		}
		if err := os.Rename(from, name+"."+strconv.Itoa(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return nil, err
	}
	return &log{Writer: io.MultiWriter(f, stdout), f: f}, nil
}

func line(w io.Writer, process, text string) {
	fmt.Fprintf(w, "%s %-11s %s\n", time.Now().Format("2006-01-02 15:04:05.00"), process, text)
}
