package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// settings are what environment, mssql.conf and arguments say together. The environment
// wins over the file (field guide §7.2).
type settings struct {
	root                         string
	eula                         bool
	saPassword                   string
	edition                      string
	major                        int
	version                      string
	hadr, agent                  bool
	collation                    string
	ip                           string
	port, dacPort                int
	tlsCert, tlsKey              string
	forceEncryption, forceStrict bool
	errorLog                     string
	dataDir, logDir, backupDir   string
	memoryLimitMB                int
	database, user, userPassword string

	serverName          string
	startTime, stopTime time.Duration
	memoryMB            int
	seed                uint64
	timings             engine.Timings
	readings            engine.Readings
	traceFlags          []string
	printVersion        bool
}

// settingsError is a setting that the server cannot start with.
type settingsError string

func (e settingsError) Error() string { return string(e) }

// readSettings joins all sources. environ has the form of os.Environ.
func readSettings(args, environ []string, now time.Time) (settings, error) {
	env := map[string]string{}
	for _, e := range environ {
		k, v, _ := strings.Cut(e, "=")
		env[k] = v
	}
	s := settings{root: "/var/opt/mssql"}
	if v := env["MSSQLSIM_ROOT"]; v != "" {
		s.root = v
	}
	if err := envFile(filepath.Join(s.root, "mssqlsim.env"), env); err != nil {
		return s, err
	}
	conf, err := readConf(filepath.Join(s.root, "mssql.conf"))
	if err != nil {
		return s, err
	}
	r := resolver{env: env, conf: conf}

	s.eula = accepted(r.text("ACCEPT_EULA", "eula.accepteula", ""))
	for i := 0; i < len(args); i++ {
		switch a := strings.ToLower(args[i]); {
		case a == "--accept-eula":
			s.eula = true
		case a == "--version":
			s.printVersion = true
		case a == "-t" && i+1 < len(args):
			i++
			s.traceFlags = append(s.traceFlags, args[i])
		case strings.HasPrefix(a, "-t"):
			s.traceFlags = append(s.traceFlags, args[i][2:])
		default:
			return s, settingsError(fmt.Sprintf("unknown argument %q", args[i]))
		}
	}
	s.saPassword = env["MSSQL_SA_PASSWORD"]
	if s.saPassword == "" {
		s.saPassword = env["SA_PASSWORD"]
	}
	s.collation = r.text("MSSQL_COLLATION", "sqlserver.collation", "")
	s.hadr = r.flag("MSSQL_ENABLE_HADR", "hadr.hadrenabled")
	s.agent = r.flag("MSSQL_AGENT_ENABLED", "sqlagent.enabled")
	s.ip = r.text("MSSQL_IP_ADDRESS", "network.ipaddress", "")
	s.port = r.number("MSSQL_TCP_PORT", "network.tcpport", 1433, 0, 65535)
	s.tlsCert, s.tlsKey = r.text("", "network.tlscert", ""), r.text("", "network.tlskey", "")
	s.forceEncryption, s.forceStrict = r.flag("", "network.forceencryption"), r.flag("", "network.forcestrict")
	s.dataDir = r.text("MSSQL_DATA_DIR", "filelocation.defaultdatadir", filepath.Join(s.root, "data"))
	s.logDir = r.text("MSSQL_LOG_DIR", "filelocation.defaultlogdir", filepath.Join(s.root, "data"))
	s.backupDir = r.text("MSSQL_BACKUP_DIR", "filelocation.defaultbackupdir", filepath.Join(s.root, "data"))
	s.errorLog = r.text("MSSQL_ERROR_LOG_FILE", "filelocation.errorlogfile", filepath.Join(s.root, "log", "errorlog"))
	s.memoryLimitMB = r.number("MSSQL_MEMORY_LIMIT_MB", "memory.memorylimitmb", 0, 0, 1<<30)
	s.database, s.user, s.userPassword = env["MSSQL_DB"], env["MSSQL_USER"], env["MSSQL_PASSWORD"]

	s.major, s.version = version(r.text("MSSQLSIM_VERSION", "", "2022"))
	if s.major == 0 {
		r.fail("MSSQLSIM_VERSION is %q, want 2017, 2019, 2022, 2025 or a version such as 16.0.4165.4", env["MSSQLSIM_VERSION"])
	}
	if s.edition, err = edition(env["MSSQL_PID"], s.major); err != nil && r.err == nil {
		r.err = err
	}
	s.serverName = env["MSSQLSIM_SERVER_NAME"]
	s.startTime = r.seconds("MSSQLSIM_START_SECONDS", time.Second)
	s.stopTime = r.seconds("MSSQLSIM_STOP_SECONDS", 0)
	s.dacPort = r.number("MSSQLSIM_DAC_PORT", "", 1434, 0, 65535)
	s.memoryMB = r.number("MSSQLSIM_MEMORY_MB", "", 0, 0, 1<<30)
	s.seed = uint64(r.number("MSSQLSIM_SEED", "", int(now.UnixNano()&(1<<62-1)), 0, 1<<62))
	if r.err == nil {
		s.timings, r.err = timings(r.text("MSSQLSIM_TIME_SCALE", "", "1"), env["MSSQLSIM_TIMINGS"])
	}
	if r.err == nil {
		r.err = assign("MSSQLSIM_READINGS", env["MSSQLSIM_READINGS"], &s.readings)
	}
	return s, r.err
}

func accepted(s string) bool {
	switch strings.ToLower(s) {
	case "y", "yes", "1", "true":
		return true
	default:
		return false
	}
}

// resolver looks a setting up in the environment and then in mssql.conf; the first wrong
// value sticks.
type resolver struct {
	env, conf map[string]string
	err       error
}

func (r *resolver) fail(format string, args ...any) {
	if r.err == nil {
		r.err = settingsError(fmt.Sprintf(format, args...))
	}
}

func (r *resolver) text(variable, key, fallback string) string {
	if v := r.env[variable]; variable != "" && v != "" {
		return v
	}
	if v := r.conf[key]; key != "" && v != "" {
		return v
	}
	return fallback
}

func (r *resolver) flag(variable, key string) bool { return accepted(r.text(variable, key, "")) }

func (r *resolver) number(variable, key string, fallback, low, high int) int {
	s := r.text(variable, key, "")
	if s == "" {
		return fallback
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < low || n > high {
		r.fail("%s%s is %q, want a number from %d to %d", variable, orKey(variable, key), s, low, high)
		return fallback
	}
	return n
}

func orKey(variable, key string) string {
	if key == "" || variable == "" {
		return key
	}
	return " (" + key + ")"
}

func (r *resolver) seconds(variable string, fallback time.Duration) time.Duration {
	s := r.env[variable]
	if s == "" {
		return fallback
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 86400 {
		r.fail("%s is %q, want seconds from 0 to 86400", variable, s)
		return fallback
	}
	return time.Duration(f * float64(time.Second))
}

// readConf reads mssql.conf into section.key, lower case. A missing file is empty.
func readConf(name string) (map[string]string, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read mssql.conf: %w", err)
	}
	return parseConf(b)
}

func parseConf(b []byte) (map[string]string, error) {
	conf := map[string]string{}
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			if !ok {
				return nil, settingsError(fmt.Sprintf("mssql.conf line %d: a section must end in ]", n))
			}
			section = strings.ToLower(strings.TrimSpace(name))
		default:
			k, v, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				return nil, settingsError(fmt.Sprintf("mssql.conf line %d: want key = value inside a section", n))
			}
			conf[section+"."+strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	return conf, lines.Err()
}

// envFile adds the variables of a KEY=VALUE file that the environment does not have.
func envFile(name string, env map[string]string) error {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(name), err)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if _, set := env[k]; ok && !set && !strings.HasPrefix(k, "#") {
			env[k] = v
		}
	}
	return nil
}
