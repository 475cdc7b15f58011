package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func sampleGroup() *v1alpha1.SQLServerAvailabilityGroup {
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name, g.UID = "prod", "ag1", "uid-1"
	g.Spec.AcceptEula, g.Spec.Edition = "Y", "Developer"
	g.Spec.Port, g.Spec.EndpointPort = 1433, 5022
	g.Spec.TerminationGracePeriodSeconds = 45
	g.Spec.Replicas = []v1alpha1.AGReplicaSpec{
		{}, {AvailabilityMode: v1alpha1.AsynchronousCommit, FailoverMode: v1alpha1.FailoverManual},
		{AvailabilityMode: v1alpha1.ConfigurationOnly},
	}
	g.Spec.MSSQLConf = map[string]string{"sqlagent.enabled": "true"}
	return g
}

func TestConfigForGroup_SurvivesTheFile(t *testing.T) {
	t.Parallel()
	c := ConfigForGroup(sampleGroup(), 3200)
	text, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), ConfigKey)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
	if got.Lease != "ag1-primary" || got.Group != "ag1" || got.StopTimeout.Duration != 45*time.Second {
		t.Errorf("unexpected values: %+v", got)
	}
	wantModes := []ag.Mode{ag.ModeSynchronous, ag.ModeAsynchronous, ag.ModeConfigurationOnly}
	for i, r := range got.Replicas {
		if r.Mode != wantModes[i] {
			t.Errorf("replica %d has mode %s, want %s", i, r.Mode, wantModes[i])
		}
	}
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"an unchanged configuration is fine", func(*Config) {}, ""},
		{"an unaccepted licence", func(c *Config) { c.AcceptEULA = false }, "acceptEULA is false"},
		{"a group without a name", func(c *Config) { c.Group = "" }, "group is empty"},
		{"an external group without a lease", func(c *Config) { c.Lease = "" }, "lease is empty"},
		{"an unknown kind", func(c *Config) { c.Kind = "Database" }, `kind "Database"`},
		{"a diagnostics time-out below ten seconds", func(c *Config) { c.Health.Timeout = metav1.Duration{Duration: 5 * time.Second} }, "at least 10s"},
		{"an unknown threshold", func(c *Config) { c.Health.Threshold = "none" }, "is none of"},
		{"an owned setting", func(c *Config) { c.MSSQLConf = map[string]string{"hadr.hadrenabled": "0"} }, "owned by the operator"},
		{"an owned setting in other letters", func(c *Config) { c.MSSQLConf = map[string]string{"EULA.acceptEULA": "N"} }, "owned by the operator"},
		{"a setting that smuggles a line", func(c *Config) { c.MSSQLConf = map[string]string{"a.b": "1\n[hadr]\nhadrenabled = 0"} }, "line break"},
		{"a setting without a section", func(c *Config) { c.MSSQLConf = map[string]string{"tcpport": "1"} }, "section.key"},
		{"a lease that the renewals cannot feed", func(c *Config) { c.Timing.L = metav1.Duration{Duration: 3 * time.Second} }, "leaseSeconds"},
		{"a port out of range", func(c *Config) { c.Port = 70000 }, "port 70000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := ConfigForGroup(sampleGroup(), 0)
			tt.change(&c)
			text, err := c.Encode()
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse([]byte(text))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestRenderConf_KeepsTheUsersSettingsUnderTheOperators(t *testing.T) {
	t.Parallel()
	c := ConfigForGroup(sampleGroup(), 3200)
	c.MSSQLConf = map[string]string{"sqlagent.enabled": "true", "traceflag.traceflag0": "3979", "network.tlsprotocols": "1.2"}
	got := renderConf(c, tlsPaths{Cert: "/var/opt/mssql/tls/tls.crt", Key: "/var/opt/mssql/tls/tls.key"})
	want := `# Written by kubectl-mssql at every start. Change spec.mssqlConf of the resource instead.
[EULA]
accepteula = Y
[hadr]
hadrenabled = 1
[memory]
memorylimitmb = 3200
[network]
tcpport = 1433
tlscert = /var/opt/mssql/tls/tls.crt
tlskey = /var/opt/mssql/tls/tls.key
tlsprotocols = 1.2
[sqlagent]
enabled = true
[telemetry]
customerfeedback = false
[traceflag]
traceflag0 = 3979
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRenderConf_TheUsersOwnMemoryLimitWins(t *testing.T) {
	t.Parallel()
	c := ConfigForInstance(&v1alpha1.SQLServerInstance{}, 3200)
	c.MSSQLConf = map[string]string{"memory.memorylimitmb": "2048"}
	got := renderConf(c, tlsPaths{})
	if !strings.Contains(got, "memorylimitmb = 2048\n") || strings.Contains(got, "3200") {
		t.Errorf("got %s", got)
	}
	if strings.Contains(got, "hadr") || strings.Contains(got, "tlscert") {
		t.Errorf("a standalone instance without certificates got %s", got)
	}
}

func FuzzRenderConf_NeverWritesASettingTwice(f *testing.F) {
	f.Add("sqlagent.enabled", "true")
	f.Add("network.TCPPORT", "1")
	f.Add("a.b", "x\ny")
	f.Fuzz(func(t *testing.T, key, value string) {
		if validateSetting(key, value) != nil {
			t.Skip()
		}
		c := ConfigForGroup(sampleGroup(), 3000)
		c.MSSQLConf = map[string]string{key: value}
		got := renderConf(c, tlsPaths{Cert: "c", Key: "k"})
		seen := map[string]bool{}
		section := ""
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "[") {
				section = strings.ToLower(line)
				continue
			}
			name, _, ok := strings.Cut(line, " = ")
			if !ok {
				continue
			}
			name = section + strings.ToLower(name)
			if seen[name] {
				t.Fatalf("%q is set twice:\n%s", name, got)
			}
			seen[name] = true
		}
		if !strings.Contains(got, "hadrenabled = 1") {
			t.Fatalf("hadr lost:\n%s", got)
		}
	})
}

func TestIdentityFromEnv_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	env := map[string]string{"POD_NAME": "ag1-0", "POD_NAMESPACE": "prod"}
	_, err := IdentityFromEnv(func(k string) string { return env[k] })
	if err == nil || !strings.Contains(err.Error(), "POD_UID not set") {
		t.Errorf("got %v", err)
	}
	env["POD_UID"] = "u"
	id, err := IdentityFromEnv(func(k string) string { return env[k] })
	if err != nil || id.Pod != "ag1-0" || id.UID != "u" {
		t.Errorf("got %+v, %v", id, err)
	}
}

func TestCopyProgram_ReplacesAWholeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, dest := filepath.Join(dir, "source"), filepath.Join(dir, "dest")
	if err := os.WriteFile(source, []byte("new program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dest, []byte("an old and longer program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyProgram(source, dest); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dest)
	if err != nil || string(got) != "new program" {
		t.Errorf("got %q, %v", got, err)
	}
	info, err := os.Stat(dest)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".install-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := copyProgram(source, filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a missing directory was accepted")
	}
}
