package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Level of a verdict: what colour and exit code say.
type Level string

const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warning" // degraded or in progress, writes are fine or expected back
	LevelBad  Level = "error"   // writes are down or data is at risk
)

// Document is the machine-readable status; every key is always present, and
// within v1 there are only additions.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Group      string `json:"group"`
	Level      Level  `json:"level"`
	Phase      string `json:"phase"`
	Reason     string `json:"reason"`
	// Writable tells whether clients can write now.
	Writable           bool         `json:"writable"`
	WritesDownSeconds  *float64     `json:"writesDownSeconds"`
	ReadyReplicas      int          `json:"readyReplicas"`
	Replicas           []ReplicaRow `json:"replicas"`
	Primary            string       `json:"primary"`
	PrimarySince       *time.Time   `json:"primarySince"`
	PrimaryBy          string       `json:"primaryBy"`
	SafeTargets        int          `json:"safeTargets"`
	AutomaticFailover  string       `json:"automaticFailover"`
	CommitsWaitFor     *int32       `json:"commitsWaitFor"`
	Sequence           int64        `json:"sequence"`
	SequenceAgree      int          `json:"sequenceAgree"`
	WriteEndpoint      string       `json:"writeEndpoint"`
	ReadEndpoint       string       `json:"readEndpoint"`
	ServerVersion      string       `json:"serverVersion"`
	PluginVersion      string       `json:"pluginVersion"`
	Operation          *Operation   `json:"operation"`
	DatabasesTotal     int          `json:"databasesTotal"`
	DatabasesInStep    int          `json:"databasesInStep"`
	Databases          []Database   `json:"databases"`
	Refusals           []Refusal    `json:"refusals"`
	Problems           []Problem    `json:"problems"`
	Conditions         []Condition  `json:"conditions"`
	Errors             []string     `json:"errors"`
	ExitCode           int          `json:"exitCode"`
	ObservedGeneration int64        `json:"observedGeneration"`
}

// ReplicaRow is one line of the table. Values that were not measured are null.
type ReplicaRow struct {
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	Mode       string     `json:"mode"`
	State      string     `json:"state"`
	IfPromoted string     `json:"ifPromoted"`
	SendQueue  *int64     `json:"sendQueueBytes"`
	RedoQueue  *int64     `json:"redoQueueBytes"`
	Lag        *int64     `json:"lagSeconds"`
	Ready      bool       `json:"ready"`
	Since      *time.Time `json:"since"`
	Node       string     `json:"node"`
	Fenced     bool       `json:"fenced"`
	Refusal    string     `json:"refusal"`
	Message    string     `json:"message"`
}

// Operation under way.
type Operation struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Phase    string     `json:"phase"`
	From     string     `json:"from"`
	Target   string     `json:"target"`
	Started  *time.Time `json:"started"`
	Deadline *time.Time `json:"deadline"`
	Steps    []Step     `json:"steps"`
}

// Step of an operation.
type Step struct {
	After float64 `json:"afterSeconds"`
	What  string  `json:"what"`
}

// Database that is not in step somewhere (all of them with -v).
type Database struct {
	Name    string `json:"name"`
	Replica string `json:"replica"`
	State   string `json:"state"`
	Sync    string `json:"sync"`
	Message string `json:"message"`
}

// Refusal is why one replica is not promoted.
type Refusal struct {
	Replica string `json:"replica"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Problem with what to do about it.
type Problem struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fix     []string `json:"fix"`
}

// Condition of the resource.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Measured is what the instance managers answered live, by replica; see live.go.
type Measured struct {
	SendQueue, RedoQueue, Lag *int64
}

// Input of Build: the resource and what was seen besides it.
type Input struct {
	Group    *api.SQLServerAvailabilityGroup
	Pods     map[string]time.Time // creation time of the pod, by replica
	Measured map[string]Measured
	Now      time.Time
	Plugin   string
	Self     string // how the user calls us
	Errors   []string
}

// Build derives the whole status from what was seen. It is pure.
func Build(in Input) Document {
	g := in.Group
	st := &g.Status
	d := Document{
		APIVersion: "cli.kubectl-mssql.io/v1", Kind: "AvailabilityGroupStatus",
		Namespace: g.Namespace, Name: g.Name, Group: g.TSQLName(),
		Phase: string(st.Phase), Reason: st.Reason, Primary: st.PrimaryReplica,
		WriteEndpoint: fmt.Sprintf("%s:%d", g.ListenerName(), port(g.Spec.Listener.Port)),
		ReadEndpoint:  fmt.Sprintf("%s:%d", g.ReadOnlyListenerName(), port(g.Spec.ReadOnlyListener.Port)),
		ServerVersion: st.Version, PluginVersion: in.Plugin, ObservedGeneration: st.ObservedGeneration,
		Replicas: []ReplicaRow{}, Databases: []Database{}, Refusals: []Refusal{}, Problems: []Problem{}, Conditions: []Condition{},
		Errors: append([]string{}, in.Errors...),
	}
	if d.Phase == "" {
		d.Phase = string(api.PhasePending)
		d.Reason = "the operator has not looked at it yet"
	}
	for _, c := range st.Conditions {
		d.Conditions = append(d.Conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message})
		if c.Type == api.ConditionAvailable {
			d.Writable = c.Status == metav1.ConditionTrue
			if !d.Writable && st.InitializationComplete {
				down := in.Now.Sub(c.LastTransitionTime.Time).Seconds()
				d.WritesDownSeconds = &down
			}
		}
	}
	d.replicas(in)
	d.databases(in)
	d.primary(in)
	d.operation(in)
	if r := st.CommitRule; r != nil {
		k := r.K
		d.CommitsWaitFor = &k
	}
	d.AutomaticFailover = automatic(g, d.SafeTargets)
	if st.Memory != nil {
		for _, b := range st.Memory.Blocks {
			d.Refusals = append(d.Refusals, Refusal{b.Replica, b.Reason, b.Message})
		}
	}
	d.problems(in)
	d.verdict()
	return d
}

func port(p int32) int32 {
	if p == 0 {
		return api.PortTDS
	}
	return p
}

func (d *Document) replicas(in Input) {
	g := in.Group
	seen := map[string]api.ReplicaStatus{}
	for _, r := range g.Status.ReplicaStatuses {
		seen[r.Name] = r
	}
	for i, spec := range g.Spec.Replicas {
		name := g.ReplicaName(i)
		r, ok := seen[name]
		row := ReplicaRow{Name: name, Mode: modeWord(spec.AvailabilityMode), Role: "?", State: "?", IfPromoted: "?"}
		if ok {
			row.Role = roleWord(r, g.Status.PrimaryReplica)
			row.State = r.State
			row.Ready, row.Node, row.Fenced = r.Ready, r.Node, r.Fenced
			row.Refusal, row.Message = r.FailoverRefusal, r.Message
			row.IfPromoted = promotedWord(r, spec)
			if r.Ready {
				d.ReadyReplicas++
			}
			if r.FailoverReady && r.Role != "PRIMARY" {
				d.SafeTargets++
			}
			if r.SequenceNumber > d.Sequence {
				d.Sequence = r.SequenceNumber
			}
		}
		if t, ok := in.Pods[name]; ok {
			row.Since = &t
		}
		if m, ok := in.Measured[name]; ok {
			row.SendQueue, row.RedoQueue, row.Lag = m.SendQueue, m.RedoQueue, m.Lag
		}
		d.Replicas = append(d.Replicas, row)
	}
	for _, r := range g.Status.ReplicaStatuses {
		if d.Sequence > 0 && r.SequenceNumber == d.Sequence {
			d.SequenceAgree++
		}
	}
}

func modeWord(m api.AvailabilityMode) string {
	switch m {
	case api.AsynchronousCommit:
		return "async"
	case api.ConfigurationOnly:
		return "config"
	case api.SynchronousCommit:
	}
	return "sync"
}

// roleWord: PRIMARY in capitals, a lost primary in brackets, everything else as it says itself.
func roleWord(r api.ReplicaStatus, primary string) string {
	switch {
	case r.Role == "PRIMARY":
		return "PRIMARY"
	case r.Role == "SECONDARY":
		return "secondary"
	case r.Role == "" && r.Name == primary:
		return "(primary)"
	case r.Role == "":
		return "?"
	}
	return r.Role
}

func promotedWord(r api.ReplicaStatus, spec api.AGReplicaSpec) string {
	switch {
	case spec.AvailabilityMode == api.ConfigurationOnly || r.Role == "PRIMARY":
		return "-"
	case r.FailoverReady:
		return "no loss"
	case spec.AvailabilityMode == api.AsynchronousCommit:
		return "loss unknown"
	case r.FailoverRefusal == "":
		return "?"
	}
	return "never"
}

// databases counts a database as in step only when every replica with data says so.
// A replica lists its databases that are not in step; one that was not reached is no proof.
func (d *Document) databases(in Input) {
	names := map[string]bool{}
	for _, db := range in.Group.Spec.Databases {
		names[db.Name] = true
	}
	reports := map[string]api.ReplicaStatus{}
	for _, r := range in.Group.Status.ReplicaStatuses {
		reports[r.Name] = r
		for _, db := range r.Databases {
			names[db.Name] = true
			d.Databases = append(d.Databases, Database{db.Name, r.Name, db.State, db.SynchronizationState, db.Message})
		}
	}
	d.DatabasesTotal = len(names)
	for name := range names {
		inStep := true
		for i, spec := range in.Group.Spec.Replicas {
			if spec.AvailabilityMode != api.ConfigurationOnly && !databaseInStep(reports[in.Group.ReplicaName(i)], name) {
				inStep = false
			}
		}
		if inStep {
			d.DatabasesInStep++
		}
	}
	slices.SortStableFunc(d.Databases, func(a, b Database) int { return strings.Compare(a.Name, b.Name) })
}

func databaseInStep(r api.ReplicaStatus, name string) bool {
	good := func(sync string) bool {
		return sync == "SYNCHRONIZED" || (sync == "SYNCHRONIZING" && r.AvailabilityMode == api.AsynchronousCommit)
	}
	if !r.Reachable {
		return false
	}
	for _, db := range r.Databases {
		if db.Name == name {
			return !db.Suspended && good(db.SynchronizationState)
		}
	}
	return good(r.SynchronizationState)
}

func (d *Document) primary(in Input) {
	for _, h := range in.Group.Status.History {
		if h.Result == "done" && h.To == d.Primary && d.Primary != "" {
			t := h.CompletedAt.Time
			if t.IsZero() {
				t = h.StartedAt.Time
			}
			d.PrimarySince = &t
			d.PrimaryBy = map[string]string{
				"planned": "planned switchover", "automatic": "automatic failover", "forced": "forced failover",
				"bootstrap": "first primary", "manual": "a failover by hand", "handover": "hand-over of a stopping pod",
			}[h.Kind]
			if d.PrimaryBy == "" {
				d.PrimaryBy = h.Kind
			}
			return
		}
	}
}

func (d *Document) operation(in Input) {
	a := in.Group.Status.Authority
	if a == nil || a.Operation == nil {
		return
	}
	op := a.Operation
	o := &Operation{ID: op.ID, Kind: op.Kind, Phase: op.Phase, From: op.From, Target: op.Target, Steps: []Step{}}
	if !op.StartedAt.IsZero() {
		t := op.StartedAt.Time
		o.Started = &t
	}
	if !op.Deadline.IsZero() {
		t := op.Deadline.Time
		o.Deadline = &t
	}
	for _, s := range op.Steps {
		o.Steps = append(o.Steps, Step{max(0, s.At.Sub(op.StartedAt.Time).Seconds()), s.What})
	}
	d.Operation = o
}

func automatic(g *api.SQLServerAvailabilityGroup, targets int) string {
	switch {
	case g.Spec.ClusterType == api.ClusterTypeNone:
		return "off (clusterType NONE)"
	case !g.AutomaticFailoverEnabled():
		return "off"
	case targets == 0:
		return "armed, but no replica could take over now"
	}
	return "armed"
}

// problems lists what a person should know, with the next command.
func (d *Document) problems(in Input) {
	add := func(code, message string, fix ...string) {
		d.Problems = append(d.Problems, Problem{code, message, append([]string{}, fix...)})
	}
	ns := ""
	if in.Group.Namespace != "default" {
		ns = " -n " + in.Group.Namespace
	}
	for _, c := range in.Group.Status.Conditions {
		bad := c.Status == metav1.ConditionTrue
		switch c.Type {
		case api.ConditionConfigured:
			if c.Status == metav1.ConditionFalse {
				add("MSSQL1001", c.Message)
			}
		case api.ConditionBootstrapFailed:
			if bad {
				add("MSSQL1002", c.Message)
			}
		case api.ConditionFailoverBlocked:
			if bad {
				add("MSSQL2001", c.Message, in.Self+" failover "+in.Group.Name+ns+" --dry-run")
			}
		case api.ConditionPrimaryCutOff:
			if bad {
				add("MSSQL2002", c.Message)
			}
		case api.ConditionConfigurationCommitPending:
			if bad {
				add("MSSQL2003", c.Message)
			}
		case api.ConditionRecoveryBlocked:
			if bad {
				add("MSSQL3001", c.Message)
			}
		case api.ConditionDatabasesReady:
			if c.Status == metav1.ConditionFalse && in.Group.Status.InitializationComplete {
				add("MSSQL3002", c.Message)
			}
		case api.ConditionFailoverReady:
			if c.Status == metav1.ConditionFalse && d.Writable && len(in.Group.Spec.Replicas) > 1 && in.Group.Status.InitializationComplete {
				add("MSSQL2011", "losing the primary now would block writes: "+c.Message)
			}
		}
	}
	for _, r := range d.Replicas {
		if r.Message != "" {
			add("MSSQL3003", r.Name+": "+r.Message, in.Self+" logs "+in.Group.Name+" "+r.Name+ns)
		}
	}
}

func (d *Document) verdict() {
	switch api.Phase(d.Phase) {
	case api.PhaseHealthy, api.PhaseRunning:
		d.Level = LevelOK
	case api.PhaseBlocked, api.PhaseFailed:
		d.Level, d.ExitCode = LevelBad, 9
	default:
		d.Level, d.ExitCode = LevelWarn, 8
		if !d.Writable {
			d.ExitCode = 9
		}
	}
}
