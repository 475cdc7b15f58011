package image

import (
	"io/fs"
	"strings"
)

const (
	mssqlUID = 10001
	writable = fs.FileMode(0o770)
)

// SimulatorFiles says where the parts of the simulated server are on this machine.
type SimulatorFiles struct {
	SQLServr string // static linux binary of tests/mssqlsim/cmd/sqlservr
	SQLCmd   string // static linux binary of tests/mssqlsim/cmd/sqlcmd
	BusyBox  string // static busybox; Debian's busybox-static puts it at /bin/busybox
}

// Simulator is an image with the layout of Microsoft's (field guide §7.1): the two
// binaries at the product's paths, user 10001, a writable /var/opt/mssql, and a shell.
// There is no permissions_check.sh: sqlservr is the command itself.
func Simulator(f SimulatorFiles, tags ...string) Options {
	const passwd = "root:x:0:0:root:/root:/bin/sh\nmssql:x:10001:0:Microsoft SQL Server:/var/opt/mssql:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	files := []File{
		{Path: "/opt/mssql/bin/sqlservr", Source: f.SQLServr, Mode: 0o755},
		{Path: "/opt/mssql-tools18/bin/sqlcmd", Source: f.SQLCmd, Mode: 0o755},
		{Path: "/bin/busybox", Source: f.BusyBox, Mode: 0o755},
		// busybox answers to sh and ash, not to bash.
		{Path: "/bin/bash", Content: []byte("#!/bin/sh\nexec /bin/sh \"$@\"\n"), Mode: 0o755},
		{Path: "/etc/passwd", Content: []byte(passwd), Mode: 0o644},
		{Path: "/etc/group", Content: []byte("root:x:0:\nmssql:x:10001:\nnogroup:x:65534:\n"), Mode: 0o644},
		// A container runtime puts its own over it.
		{Path: "/etc/hosts", Content: []byte("127.0.0.1 localhost\n::1 localhost\n"), Mode: 0o644},
		{Path: "/etc/nsswitch.conf", Content: []byte("hosts: files dns\n"), Mode: 0o644},
		{Path: "/etc/os-release", Content: []byte("NAME=\"mssqlsim\"\nID=mssqlsim\nPRETTY_NAME=\"simulated SQL Server, for tests only\"\n"), Mode: 0o644},
		{Path: "/etc/ssl/certs", Dir: true, Mode: 0o755},
		{Path: "/root", Dir: true, Mode: 0o700},
		{Path: "/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
		{Path: "/var/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
		{Path: "/run", Dir: true, Mode: 0o755},
		{Path: "/usr/bin/env", Link: "/bin/busybox"},
		{Path: "/var/opt/mssql", Dir: true, Mode: writable, UID: mssqlUID},
		{Path: "/var/opt/mssql/security/ca-certificates", Dir: true, Mode: writable, UID: mssqlUID},
		{Path: "/var/opt/mssql/security", Dir: true, Mode: writable, UID: mssqlUID},
	}
	for _, name := range strings.Fields(applets) {
		files = append(files, File{Path: "/bin/" + name, Link: "busybox"})
	}
	return Options{
		Tags:  tags,
		Files: files,
		Cmd:   []string{"/opt/mssql/bin/sqlservr"},
		Env: []string{
			"PATH=/opt/mssql-tools18/bin:/opt/mssql/bin:/bin:/usr/bin",
			"HOME=/var/opt/mssql",
		},
		User:   "10001",
		Ports:  []string{"1433/tcp"},
		Labels: map[string]string{"org.opencontainers.image.title": "mssqlsim", "org.opencontainers.image.description": "simulated SQL Server, for tests only"},
	}
}

// applets are the commands that scripts and probes of other operators use.
const applets = `sh ash [ [[ awk basename cat chgrp chmod chown cksum clear cmp cp cut date dd df dirname du echo
egrep env expr false fgrep find fold free getopt grep groups gunzip gzip head hexdump hostname id ip kill killall
less ln ls md5sum mkdir mkfifo mktemp more mv nc netstat nohup nproc nslookup od paste pidof ping printenv printf
ps pwd readlink realpath rm rmdir sed seq setsid sha256sum sleep sort stat strings stty sync tac tail tar tee
test time timeout top touch tr true truncate tty umount uname uniq unlink uptime usleep vi watch wc wget which
whoami xargs yes`

// Product is the product's own image: nothing but its static binary, as user 65532.
func Product(binary string, tags ...string) Options {
	return Options{
		Tags: tags,
		Files: []File{
			{Path: "/kubectl-mssql", Source: binary, Mode: 0o755},
			{Path: "/etc/passwd", Content: []byte("nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"), Mode: 0o644},
			{Path: "/etc/group", Content: []byte("nonroot:x:65532:\n"), Mode: 0o644},
			{Path: "/home/nonroot", Dir: true, Mode: 0o700, UID: 65532, GID: 65532},
			{Path: "/tmp", Dir: true, Mode: 0o777 | fs.ModeSticky},
		},
		Entrypoint: []string{"/kubectl-mssql"},
		Env:        []string{"HOME=/home/nonroot"},
		User:       "65532:65532",
		WorkingDir: "/home/nonroot",
	}
}

// Pause is a sandbox image: a static binary that does nothing until it is told to stop.
func Pause(binary string, tags ...string) Options {
	return Options{
		Tags:       tags,
		Files:      []File{{Path: "/pause", Source: binary, Mode: 0o755}},
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
	}
}
