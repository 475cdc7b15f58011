// Package skew compares the versions of the plugin and of the operator that answers
// for a namespace, before a verb writes an order.
package skew

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Level of a difference.
type Level int

const (
	// Fits: at most one minor version apart, or a version is not known.
	Fits Level = iota
	// Apart: more than one minor version.
	Apart
	// Incompatible: another major version, or orders that the operator cannot read.
	Incompatible
)

// Verdict is the comparison in one word and one sentence.
type Verdict struct {
	Level   Level
	Message string
	Hint    string
}

// patience with a look before every write: it must not be what makes the verb slow.
const patience = 3 * time.Second

// Compare a plugin with an operator. Versions that cannot be read prove nothing and fit.
// requestAPI is what the operator says it understands; 0 when it says nothing.
func Compare(plugin, operator string, requestAPI int) Verdict {
	if requestAPI != 0 && requestAPI < manifests.RequestAPI {
		return Verdict{Incompatible,
			fmt.Sprintf("the operator understands version %d of the order annotation, this plugin writes version %d", requestAPI, manifests.RequestAPI),
			"upgrade the operator, or use a plugin of its version"}
	}
	p, err := installation.Parse(plugin)
	if err != nil {
		return Verdict{}
	}
	o, err := installation.Parse(operator)
	if err != nil {
		return Verdict{}
	}
	text := fmt.Sprintf("plugin %s, operator %s", plugin, operator)
	older, hint := "plugin", "install the plugin of version "+operator
	if o.LessThan(p) {
		older, hint = "operator", "upgrade the operator: kubectl mssql upgrade"
	}
	apart := int(p.Minor()) - int(o.Minor())
	switch {
	case p.Major() != o.Major():
		return Verdict{Incompatible, text + ": another major version", hint}
	case apart > 1 || apart < -1:
		return Verdict{Apart, fmt.Sprintf("%s: the %s is more than one minor version behind", text, older), hint}
	}
	return Verdict{Fits, text, ""}
}

// Of compares this plugin with one operator.
func Of(i installation.Installation) Verdict {
	api := 0
	if i.Settings != nil {
		api = i.Settings.RequestAPI
	}
	return Compare(version.Get().Version, i.Version, api)
}

// Gate looks for the operator of the namespace that a writing verb is about. It warns
// on standard error when the versions are more than one minor apart, and refuses with
// exit code 11 when they do not fit. What it cannot see is no reason to refuse: the
// verb itself says what it lacks.
func Gate(ctx context.Context, f factory.Factory, s *iostreams.IOStreams) error {
	ns, _, err := f.Namespace()
	if err != nil {
		return nil //nolint:nilerr // the verb itself tells of it
	}
	c, err := f.Client()
	if err != nil {
		return nil //nolint:nilerr // the verb itself tells of it
	}
	return gate(ctx, c, ns, s)
}

func gate(ctx context.Context, c client.Reader, namespace string, s *iostreams.IOStreams) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := installation.Find(ctx, c)
	if err != nil {
		return nil // rights or network are the verb's business
	}
	for _, i := range found {
		if !i.Watches(namespace) {
			continue
		}
		switch v := Of(i); v.Level {
		case Incompatible:
			return exit.Errorf(exit.Incompatible, v.Hint, "plugin and operator do not fit together: %s (operator in namespace %s)", v.Message, i.Namespace)
		case Apart:
			fmt.Fprintf(s.ErrOut, "%s %s; %s\n", iostreams.Paint(s.ColorErr(), iostreams.StyleYellow, s.Mark(iostreams.MarkWarn)), v.Message, v.Hint)
		case Fits:
		}
	}
	return nil
}
