package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

func volume(t *testing.T, conf string) string {
	t.Helper()
	root := t.TempDir()
	if conf != "" {
		if err := os.WriteFile(filepath.Join(root, "mssql.conf"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, root string, env ...string) (settings, error) {
	t.Helper()
	return readSettings(nil, append(env, "MSSQLSIM_ROOT="+root), time.Unix(0, 1))
}

func TestSettings_TheEnvironmentWinsOverTheFile(t *testing.T) {
	t.Parallel()
	root := volume(t, "[EULA]\naccepteula = Y\n# comment\n[network]\ntcpport = 1500\nipaddress=127.0.0.1\nforceencryption = 1\n[hadr]\nhadrenabled = 1\n[memory]\nmemorylimitmb = 3000\n")
	s, err := read(t, root, "MSSQL_TCP_PORT=1600")
	if err != nil {
		t.Fatal(err)
	}
	if !s.eula || s.port != 1600 || s.ip != "127.0.0.1" || !s.forceEncryption || !s.hadr || s.memoryLimitMB != 3000 {
		t.Errorf("settings = %+v", s)
	}
}

func TestSettings_TheVolumesFileAddsKnobs(t *testing.T) {
	t.Parallel()
	root := volume(t, "")
	if err := os.WriteFile(filepath.Join(root, "mssqlsim.env"), []byte("MSSQLSIM_START_SECONDS=7\nMSSQLSIM_VERSION=2019\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := read(t, root, "MSSQLSIM_VERSION=2025")
	if err != nil || s.startTime != 7*time.Second || s.major != 17 {
		t.Errorf("start %v, major %d, %v", s.startTime, s.major, err)
	}
}

func TestSettings_Knobs(t *testing.T) {
	t.Parallel()
	s, err := read(t, volume(t, ""), "MSSQLSIM_TIME_SCALE=0.5", "MSSQLSIM_TIMINGS=recovery=5s",
		"MSSQLSIM_READINGS=Planned=sticky, joinrole=resolving,SecondaryResolvesOnPrimaryLoss,Latch41104=15s")
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Readings{Planned: engine.PlannedSticky, JoinRole: engine.JoinResolving, SecondaryResolvesOnPrimaryLoss: true, Latch41104: 15 * time.Second}
	if diff := cmp.Diff(want, s.readings); diff != "" {
		t.Errorf("readings (-want +got):\n%s", diff)
	}
	d := engine.DefaultTimings()
	if s.timings.Recovery != 5*time.Second || s.timings.PromotionMax != d.PromotionMax/2 {
		t.Errorf("timings = %+v", s.timings)
	}
}

func TestSettings_WrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, conf, env, want string
	}{
		{"a port that is no number", "", "MSSQL_TCP_PORT=x", "MSSQL_TCP_PORT"},
		{"a port in the file", "[network]\ntcpport = 70000\n", "A=b", "network.tcpport"},
		{"an edition that does not exist", "", "MSSQL_PID=Ultimate", "MSSQL_PID"},
		{"an edition that this version does not have", "", "MSSQL_PID=StandardDeveloper", "MSSQL_PID"},
		{"an unknown reading", "", "MSSQLSIM_READINGS=Nope=1", "Nope"},
		{"an unknown timing", "", "MSSQLSIM_TIMINGS=Recovery=fast", "Recovery"},
		{"an unknown version", "", "MSSQLSIM_VERSION=2008", "MSSQLSIM_VERSION"},
		{"a file without sections", "tcpport = 1\n", "A=b", "line 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := read(t, volume(t, c.conf), c.env)
			var e settingsError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that names %s", err, c.want)
			}
		})
	}
}

func TestPasswordPolicy(t *testing.T) {
	t.Parallel()
	for password, ok := range map[string]bool{
		"": false, "Aa1!": false, "alllower": false, "lower123": false, "Lower123": true, "lower!23": true,
		"Pässwörter": false, strings.Repeat("Aa1", 43): false, strings.Repeat("Aa", 63) + "1": true,
	} {
		if problem := passwordProblem(password); (problem == "") != ok {
			t.Errorf("%q: %q", password, problem)
		}
	}
}

func TestServerName(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"mssql-0": "mssql-0", "mssql-0.mssql.db.svc": "mssql-0", "a-very-long-host-name": "a-very-long-hos"} {
		if got, cut := serverName(host); got != want || cut != (len(host) > 20 && !strings.Contains(host, ".")) {
			t.Errorf("serverName(%q) = %q, %v", host, got, cut)
		}
	}
}

func TestMemory_TheSmallestLimitCounts(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\n"}
	source := func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	if got := memoryMB(source); got != 16000 {
		t.Errorf("machine: %d MB", got)
	}
	files["/sys/fs/cgroup/memory.max"] = "max\n"
	if got := memoryMB(source); got != 16000 {
		t.Errorf("no limit: %d MB", got)
	}
	files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "2147483648\n"
	if got := memoryMB(source); got != 2048 {
		t.Errorf("limit of 2 GiB: %d MB", got)
	}
}

func TestRun_RefusesToStart(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		env  []string
		want string
	}{
		{"without the EULA", nil, "EULA"},
		{"with too little memory", []string{"ACCEPT_EULA=Y", "MSSQLSIM_MEMORY_MB=1999"}, "2000 megabytes"},
		{"with a weak password", []string{"ACCEPT_EULA=Y", "MSSQL_SA_PASSWORD=weak"}, "Unable to set system administrator password"},
		{"with a certificate that is not there", []string{"ACCEPT_EULA=Y", "MSSQL_SA_PASSWORD=Str0ngPassw0rd"}, "network.tlscert"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := volume(t, "[network]\ntlscert = /nonexistent.pem\ntlskey = /nonexistent.key\n")
			var out, errs bytes.Buffer
			code := run(context.Background(), nil, append(c.env, "MSSQLSIM_ROOT="+root, "MSSQLSIM_SERVER_NAME=a"), &out, &errs)
			if code != 1 || !strings.Contains(out.String()+errs.String(), c.want) {
				t.Errorf("code %d\n%s%s", code, out.String(), errs.String())
			}
		})
	}
}

func TestErrorLog_OldOnesAreKept(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log", "errorlog")
	for i := range 9 {
		l, err := openErrorLog(name, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		line(l, "Server", strings.Repeat("x", i))
		_ = l.Close()
	}
	names, _ := os.ReadDir(filepath.Dir(name))
	if len(names) != 1+keptLogs {
		t.Errorf("%d logs", len(names))
	}
}

func FuzzConf(f *testing.F) {
	f.Add([]byte("[a]\nb = c\n; d\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		conf, err := parseConf(b)
		for k := range conf {
			if err == nil && !strings.Contains(k, ".") {
				t.Errorf("a key outside any section: %q", k)
			}
		}
	})
}
