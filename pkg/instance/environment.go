//go:build linux

package instance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// firstStartName marks a first start that has not been seen to succeed: when it is
// interrupted, the next start must pass the password of sa again.
const firstStartName = "first-start"

// masterPath is where sqlservr keeps master: without it the next start is its first.
func masterPath(o Options, c Config) string {
	for key, value := range c.MSSQLConf {
		if strings.EqualFold(key, "filelocation.masterdatafile") {
			return value
		}
	}
	return filepath.Join(o.DataDir, "data", "master.mdf")
}

// isFirstStart tells whether sqlservr is to be given the password of sa, and leaves
// the mark before it is.
func isFirstStart(o Options, c Config) (bool, error) {
	mark := filepath.Join(o.stateDir(), firstStartName)
	_, err := os.Stat(masterPath(o, c))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, replaceFile(mark, []byte("\n"), 0o600)
	case err != nil:
		return false, err
	}
	_, err = os.Stat(mark)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// firstStartDone takes the mark away: sa has logged in.
func firstStartDone(o Options) error {
	err := os.Remove(filepath.Join(o.stateDir(), firstStartName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// serverEnvironment is what sqlservr is started with: the container's own
// environment, under the variables that the manager owns (FG 7.2). saPassword is
// empty but for the first start.
func serverEnvironment(inherited []string, c Config, saPassword string) []string {
	owned := map[string]bool{
		"ACCEPT_EULA": true, "MSSQL_PID": true, "MSSQL_SA_PASSWORD": true, "SA_PASSWORD": true,
		"MSSQL_TCP_PORT": true, "MSSQL_ENABLE_HADR": true,
	}
	env := make([]string, 0, len(inherited)+3)
	for _, e := range inherited {
		if name, _, _ := strings.Cut(e, "="); !owned[name] {
			env = append(env, e)
		}
	}
	env = append(env, "ACCEPT_EULA=Y", "MSSQL_PID="+c.Edition)
	if saPassword != "" {
		env = append(env, "MSSQL_SA_PASSWORD="+saPassword)
	}
	return env
}
