package cli_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// No PowerShell runs here: the script is looked at as text.
func TestPowerShell_TheScriptRegistersForThePluginAndIsWhole(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--no-descriptions"}} {
		code, out, errOut, a := call(t, append([]string{"completion", "powershell"}, more...))
		if code != exit.OK || errOut != "" || len(a.Requests()) > 0 {
			t.Fatalf("exit %d, %s, asked %v", code, errOut, a.Requests())
		}
		for _, want := range []string{"Register-ArgumentCompleter -CommandName 'kubectl-mssql'", "param(", "$WordToComplete", "__complete"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in the script", want)
			}
		}
		if none := strings.Contains(out, "__completeNoDesc"); none != (more != nil) {
			t.Errorf("%v: asks without descriptions: %v", more, none)
		}
		if open, closed := strings.Count(out, "{"), strings.Count(out, "}"); open != closed || open == 0 {
			t.Errorf("%d blocks are opened and %d closed", open, closed)
		}
	}
}
