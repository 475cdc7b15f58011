package status

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// InstanceInput of BuildInstance.
type InstanceInput struct {
	Instance *api.SQLServerInstance
	Pods     map[string]PodFacts
	PodsRead bool
	Reports  map[string]managerapi.Report
	Operator *Operator
	Now      time.Time
	Plugin   string
	Self     string
	NS       string
	Events   []events.Event // with -vv
	Errors   []Unseen
	Taints   *Taints
}

// BuildInstance derives the status of a standalone instance. It is pure.
func BuildInstance(in InstanceInput) InstanceDocument {
	i := in.Instance
	d := InstanceDocument{
		APIVersion: output.APIVersion, Kind: KindInstance, Namespace: i.Namespace, Name: i.Name,
		Phase: string(i.Status.Phase), Reason: i.Status.Reason, Endpoint: i.Status.Endpoint, State: "?",
		ServerVersion: i.Status.Version, PluginVersion: in.Plugin, Operator: in.Operator,
		Problems: []Problem{}, Conditions: conditions(i.Status.Conditions), Errors: append([]Unseen{}, in.Errors...),
		ObservedGeneration: i.Status.ObservedGeneration, Paused: pause(i.Annotations), Events: append([]events.Event{}, in.Events...),
	}
	if d.Phase == "" {
		d.Phase, d.Reason = string(api.PhasePending), "the operator has not looked at it yet"
	}
	for _, c := range i.Status.Conditions {
		if c.Type == api.ConditionAvailable {
			d.Writable = c.Status == metav1.ConditionTrue
		}
	}
	pod := i.Name + "-0"
	if f, ok := in.Pods[pod]; ok {
		d.Since, d.Node, d.Ready, d.Waiting = instant(f.Created), f.Node, f.Ready, f.Waiting
	} else if in.PodsRead {
		d.State = "missing"
	}
	if r, ok := in.Reports[pod]; ok {
		d.State = r.Server
	}
	d.fence(in)
	if d.Paused != nil {
		d.add(api.ReasonPaused, "", d.Paused.told(), in.Self+" maintenance off "+d.Name+in.NS)
		if api.Phase(d.Phase) == api.PhasePaused {
			d.Reason = d.Paused.who(in.Now)
		}
	}
	d.doubt(in)
	d.problemsOf(in)
	switch {
	case in.Operator != nil && in.Operator.Ready == 0:
		d.Phase, d.Reason, d.Level, d.ExitCode = PhaseUnattended, "no operator is running", LevelWarn, 8
		if r, ok := in.Reports[pod]; ok {
			d.Writable = r.Problem == "" && len(r.Unusable) == 0
		}
		if !d.Writable {
			d.Level, d.ExitCode = LevelBad, 9
		}
	case api.Phase(d.Phase) == api.PhaseRunning:
		d.Level = LevelOK
	case api.Phase(d.Phase) == api.PhaseFailed:
		d.Level, d.ExitCode = LevelBad, 9
	default:
		d.Level, d.ExitCode = LevelWarn, 9
		if d.Writable {
			d.ExitCode = 8
		}
	}
	return d
}

func (d *InstanceDocument) fence(in InstanceInput) {
	list, err := api.ParseFenced(in.Instance.Annotations[api.AnnotationFenced])
	if err != nil {
		return // the operator says so in a condition
	}
	for _, f := range list {
		d.Fenced = true
		text := d.Name + " is fenced"
		if f.By != "" {
			text += " by " + f.By
		}
		if f.Reason != "" {
			text += fmt.Sprintf(": %q", f.Reason)
		}
		d.add("ReplicaFenced", "", text, in.Self+" fence off "+d.Name+" "+f.Replica+in.NS)
	}
}

func (d *InstanceDocument) add(reason, fallback, message string, fix ...string) {
	d.Problems = append(d.Problems, Problem{reasons.CodeOr(reason, fallback), orWord(reason, fallback), message, append([]string{}, fix...)})
}

func (d *InstanceDocument) problemsOf(in InstanceInput) {
	if in.Operator != nil && in.Operator.Ready == 0 {
		d.add("OperatorSilent", "", fmt.Sprintf("the operator in namespace %s has no ready pod: nobody watches the instance", in.Operator.Namespace),
			"kubectl get pods -n "+in.Operator.Namespace)
	}
	for _, c := range in.Instance.Status.Conditions {
		if c.Type == api.ConditionConfigured && c.Status == metav1.ConditionFalse {
			text, fix := in.Taints.say(c.Message, nil)
			d.add(c.Reason, "NotConfigured", text, fix...)
		}
	}
	if cause := strings.TrimSuffix(strings.TrimPrefix(d.Waiting, pendingPod), "."); cause != "" && !d.Ready &&
		!slices.ContainsFunc(d.Problems, func(p Problem) bool { return strings.Contains(p.Message, cause) }) {
		text, fix := in.Taints.say(d.Waiting, []string{in.Self + " events " + d.Name + in.NS})
		d.add("ReplicaInTrouble", "", text, fix...)
	}
	if r, ok := in.Reports[d.Name+"-0"]; ok && r.Problem != "" {
		d.add("ReplicaInTrouble", "", r.Problem, in.Self+" logs "+d.Name+in.NS)
	}
}

// instance writes the screen of a standalone instance.
func (t *text) instance(d InstanceDocument) {
	mark, st := levelStyle(d.Level)
	writes, reason := "not available", headline(d.Reason)
	if d.Writable {
		writes = "writes fine"
	}
	if d.Doubt != nil && !t.o.wide() {
		reason = d.Doubt.Message
	}
	parts := []string{writes}
	if api.Phase(d.Phase) == api.PhaseRunning {
		reason = ""
		parts = []string{"ready", "endpoint " + dash(d.Endpoint)}
		if !d.Ready {
			parts[0] = "not ready"
		}
	}
	t.oneLine(mark, st, d.Namespace+"/"+d.Name, d.Phase, reason, parts, false)
	t.section("Summary")
	t.row("Server", "%s", dash(d.State))
	t.row("Endpoint", "%s", dash(d.Endpoint))
	pod := d.Name + "-0"
	if d.Since != nil {
		pod += " for " + age(t.o.Now.Sub(*d.Since))
	}
	t.row("Pod", "%s on %s", pod, dash(d.Node))
	versions := "SQL Server " + dash(d.ServerVersion)
	if d.Operator != nil && d.Operator.Version != "" {
		versions += " · operator " + d.Operator.Version
	}
	t.row("Versions", "%s · plugin %s", versions, d.PluginVersion)
	if t.o.Verbose > 0 {
		t.section("Conditions")
		for _, c := range d.Conditions {
			t.line("  %-20s %-8s %s  %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if t.o.Verbose > 1 {
		t.events(d.Events, d.Name)
	}
	t.d = Document{Problems: d.Problems, Errors: d.Errors}
	t.problems()
	if d.Ready || t.o.Verbose > 0 || !strings.HasPrefix(d.State, "missing") {
		t.unseen()
	}
}

// WriteInstanceText writes the screen of an instance.
func WriteInstanceText(w io.Writer, s *iostreams.IOStreams, d InstanceDocument, o TextOptions) error {
	t := &text{o: o, s: s}
	t.instance(d)
	return t.flush(w)
}
