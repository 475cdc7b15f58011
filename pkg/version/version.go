// Package version tells which build this is. The linker sets the variables.
package version

import (
	"runtime"
	"runtime/debug"
)

// Set by -ldflags "-X …".
var (
	version = "0.1.0"
	commit  = ""
	date    = ""
)

// Info is one build of the binary.
type Info struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	Date      string `json:"date,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get returns this build.
func Get() Info {
	i := Info{Version: version, Commit: commit, Date: date,
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if i.Commit == "" {
		if bi, ok := debug.ReadBuildInfo(); ok {
			for _, s := range bi.Settings {
				if s.Key == "vcs.revision" {
					i.Commit = s.Value
				}
			}
		}
	}
	return i
}
