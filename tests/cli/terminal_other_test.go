//go:build !linux

package cli_test

import "github.com/rogpeppe/go-internal/testscript"

// cmdTerminal needs Linux's terminals; the rest of a script is worth running without.
func cmdTerminal(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Logf("skipped: no terminal")
}
