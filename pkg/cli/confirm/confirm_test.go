package confirm

import (
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func TestOnlyAYesIsAYes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		yes, tty bool
		typed    string
		ok       bool
		asked    bool
	}{
		"--yes":                 {yes: true, ok: true},
		"no terminal":           {typed: "y\n"},
		"y":                     {tty: true, typed: "y\n", ok: true, asked: true},
		"Y with blanks":         {tty: true, typed: " Y \r\n", ok: true, asked: true},
		"yes":                   {tty: true, typed: "yes\n", ok: true, asked: true},
		"yes without a newline": {tty: true, typed: "yes", ok: true, asked: true},
		"n":                     {tty: true, typed: "n\n", asked: true},
		"nothing":               {tty: true, typed: "\n", asked: true},
		"the end":               {tty: true, asked: true},
		"something else":        {tty: true, typed: "yep\n", asked: true},
		"the answer comes late": {tty: true, typed: "\ny\n", asked: true},
	} {
		s, _, out, errOut := iostreams.Test()
		s.In, s.StdinTTY, s.StderrTTY = strings.NewReader(c.typed), c.tty, c.tty
		err := YesNo(s, c.yes, "--yes")
		if (err == nil) != c.ok || err != nil && exit.Of(err) != exit.NotConfirmed {
			t.Errorf("%s: %v", name, err)
		}
		if asked := strings.Contains(errOut.String(), "[y/N]"); asked != c.asked || out.Len() > 0 {
			t.Errorf("%s: asked %v, standard output %q", name, asked, out)
		}
	}
}

func TestAWordMustBeTypedAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		yes, tty     bool
		given, typed string
		ok           bool
	}{
		"typed":                          {tty: true, typed: "sales\n", ok: true},
		"typed in capitals":              {tty: true, typed: "SALES\n"},
		"a y":                            {tty: true, typed: "y\n"},
		"given with --yes":               {yes: true, given: "sales", ok: true},
		"given alone":                    {given: "sales"},
		"given alone, on a terminal":     {given: "sales", tty: true, typed: "sales\n", ok: true},
		"--yes alone":                    {yes: true},
		"another word given":             {yes: true, given: "other"},
		"another word given, then typed": {tty: true, given: "other", typed: "sales\n"},
	} {
		s, _, _, _ := iostreams.Test()
		s.In, s.StdinTTY, s.StderrTTY = strings.NewReader(c.typed), c.tty, c.tty
		err := Typed(s, c.yes, c.given, "sales", "Type sales: ", "--yes --confirm=sales")
		if (err == nil) != c.ok || err != nil && exit.Of(err) != exit.NotConfirmed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
