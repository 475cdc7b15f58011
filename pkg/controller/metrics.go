package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Metrics of the controller. One value a process.
type Metrics struct {
	phase     *prometheus.GaugeVec
	primary   *prometheus.GaugeVec
	ready     *prometheus.GaugeVec
	safe      *prometheus.GaugeVec
	blocked   *prometheus.GaugeVec
	failovers *prometheus.CounterVec
	pass      *prometheus.HistogramVec
	action    *prometheus.HistogramVec

	mu   sync.Mutex
	seen map[types.NamespacedName]time.Time
}

// NewMetrics makes and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	group := []string{"namespace", "group"}
	with := func(more ...string) []string { return append(append([]string{}, group...), more...) }
	const prefix = "kubectl_mssql_controller_"
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &Metrics{
		phase:   gauge("group_phase", "1 for the phase in which the availability group is.", with("phase")),
		primary: gauge("group_primary", "1 for the replica that is primary.", with("replica")),
		ready:   gauge("group_ready_replicas", "Replicas whose pod is ready.", group),
		safe:    gauge("group_safe_targets", "Replicas that would be promoted now without loss.", group),
		blocked: gauge("group_failover_blocked", "1 while nobody can write and nobody may be promoted.", group),
		failovers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "role_changes_total",
			Help: "Role changes seen by this process, by kind and result."}, with("kind", "result")),
		pass: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "pass_duration_seconds",
			Help: "Duration of one pass over an availability group.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 12)}, group),
		action: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "action_duration_seconds",
			Help: "Duration of one action on a server, by kind and result.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 12)}, []string{"action", "result"}),
		seen: map[types.NamespacedName]time.Time{},
	}
	for _, c := range []prometheus.Collector{m.phase, m.primary, m.ready, m.safe, m.blocked, m.failovers, m.pass, m.action} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe takes down one pass; its facts carry the status as just computed.
func (m *Metrics) observe(f groupFacts, took time.Duration) {
	if m == nil {
		return
	}
	ns, name := f.Group.Namespace, f.Group.Name
	status := f.Group.Status.DeepCopy()
	groupStatus(f, status)
	match := prometheus.Labels{"namespace": ns, "group": name}
	m.phase.DeletePartialMatch(match)
	m.phase.WithLabelValues(ns, name, string(status.Phase)).Set(1)
	m.primary.DeletePartialMatch(match)
	if status.PrimaryReplica != "" {
		m.primary.WithLabelValues(ns, name, status.PrimaryReplica).Set(1)
	}
	m.ready.WithLabelValues(ns, name).Set(float64(f.Scope.ready()))
	m.safe.WithLabelValues(ns, name).Set(float64(f.safeTargets()))
	blocked := 0.0
	if findCondition(status.Conditions, v1alpha1.ConditionFailoverBlocked).Status == "True" {
		blocked = 1
	}
	m.blocked.WithLabelValues(ns, name).Set(blocked)
	m.pass.WithLabelValues(ns, name).Observe(took.Seconds())
	if f.Report == nil {
		return
	}
	m.count(f)
	for _, o := range f.Report.Outcomes {
		result := "done"
		if o.Err != nil {
			result = "failed"
		}
		m.action.WithLabelValues(actionName(o.Action), result).Observe(o.Took.Seconds())
	}
}

// count counts the entries of the history that are newer than those seen before; the
// first look at a group only takes note of what is there.
func (m *Metrics) count(f groupFacts) {
	key := types.NamespacedName{Namespace: f.Group.Namespace, Name: f.Group.Name}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.seen[key]
	newest := last
	for _, c := range f.Report.Memory.History {
		if c.CompletedAt.After(newest) {
			newest = c.CompletedAt
		}
		if known && c.CompletedAt.After(last) {
			m.failovers.WithLabelValues(key.Namespace, key.Name, c.Kind, c.Result).Inc()
		}
	}
	m.seen[key] = newest
}

func (m *Metrics) forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	match := prometheus.Labels{"namespace": key.Namespace, "group": key.Name}
	for _, v := range []*prometheus.GaugeVec{m.phase, m.primary, m.ready, m.safe, m.blocked} {
		v.DeletePartialMatch(match)
	}
	m.pass.DeletePartialMatch(match)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, key)
}

// actionName is the kind of an action as a label: few, and known in advance.
func actionName(a ag.Action) string {
	switch a.(type) {
	case ag.Swap:
		return "swap"
	case ag.Promote:
		return "promote"
	case ag.TakeOffline:
		return "offline"
	case ag.Promise:
		return "promise"
	case ag.Reseat:
		return "reseat"
	case ag.RestartEndpoints, ag.StopEndpoints, ag.StartEndpoints:
		return "endpoint"
	case ag.Rejoin:
		return "rejoin"
	case ag.Reseed:
		return "reseed"
	case ag.ResumeDatabase:
		return "resume"
	case ag.SetCommitRule:
		return "commit-rule"
	case ag.SetRoleLabel:
		return "label"
	case ag.Seal:
		return "seal"
	}
	return "setup"
}
