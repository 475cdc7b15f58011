package state

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Policy is the resource's spec, and the standing orders in its annotations, as the
// decision needs them. An unreadable annotation of fenced replicas is an error: to
// take it for an empty list could promote a replica that somebody keeps out.
func Policy(g *v1alpha1.SQLServerAvailabilityGroup) (ag.Policy, error) {
	fenced, err := v1alpha1.ParseFenced(g.Annotations[v1alpha1.AnnotationFenced])
	if err != nil {
		return ag.Policy{}, err
	}
	isFenced, why := map[string]bool{}, map[string]string{}
	for _, f := range fenced {
		isFenced[f.Replica], why[f.Replica] = true, fencedWhy(f)
	}
	f := g.Spec.AutomaticFailover
	t := f.Timing.Effective()
	p := ag.Policy{
		Group:         g.TSQLName(),
		UID:           string(g.UID),
		External:      g.Spec.ClusterType != v1alpha1.ClusterTypeNone,
		AutoFailover:  g.AutomaticFailoverEnabled(),
		Threshold:     seconds(f.FailoverThresholdSeconds),
		FailsafeHold:  seconds(f.FailsafeHoldOffSeconds),
		MinBetween:    seconds(f.MinTimeBetweenFailoversSeconds),
		Stability:     seconds(f.PrimaryStabilityWindowSeconds),
		AllowDataLoss: f.AllowDataLoss,
		ForceAfter:    seconds(f.ForceFailoverGracePeriodSeconds),
		Preferred:     g.Spec.PreferredPrimary,
		SwitchoverMax: seconds(g.Spec.MaxSwitchoverDelaySeconds),
		Timing:        ag.Timing{Renew: t.Renew, Call: t.Call, A: t.A, Q: t.Q, L: t.L, M: t.M},
		Required:      g.Spec.Durability == v1alpha1.DurabilityRequired,
		K:             -1,
		RelaxAfter:    seconds(g.Spec.RelaxAfterSeconds),
		AllowReseed:   g.Spec.AutomaticReseed,
		Paused:        g.Annotations[v1alpha1.AnnotationPaused] == "true",
		Handover:      g.Spec.PreStopFailover.Enabled == nil || *g.Spec.PreStopFailover.Enabled,
		HandoverMax:   seconds(g.Spec.PreStopFailover.TimeoutSeconds),
		Initialized:   g.Status.InitializationComplete,
	}
	if k := g.Spec.RequiredSynchronizedSecondariesToCommit; k != nil {
		p.K, p.Required = *k, true
	}
	if n := f.MaxReplicationLagSeconds; n != nil {
		p.MaxLag = seconds(*n)
	}
	for i, r := range g.Spec.Replicas {
		name := g.ReplicaName(i)
		p.Replicas = append(p.Replicas, ag.ReplicaPolicy{
			Name: name, Ordinal: i, Mode: Mode(r.AvailabilityMode),
			Auto:     r.FailoverMode != v1alpha1.FailoverManual,
			Readable: r.ReadableSecondary, Fenced: isFenced[name], FencedWhy: why[name],
			URL: EndpointURL(g, name),
		})
	}
	for _, d := range g.Spec.Databases {
		p.Databases = append(p.Databases, d.Name)
	}
	return p, nil
}

func fencedWhy(f v1alpha1.FencedReplica) string {
	var parts []string
	if f.By != "" {
		parts = append(parts, "by "+f.By)
	}
	if f.Reason != "" {
		parts = append(parts, f.Reason)
	}
	return strings.Join(parts, ": ")
}

// EndpointURL is the address of a replica's mirroring endpoint: its pod's name in
// the group's headless Service, which resolves before the pod is ready.
func EndpointURL(g *v1alpha1.SQLServerAvailabilityGroup, replica string) string {
	return fmt.Sprintf("TCP://%s:%d", HostName(g.Namespace, g.Name, replica), g.Spec.EndpointPort)
}

// HostName is the DNS name of a replica's pod, and the name that its TDS certificate carries.
func HostName(namespace, group, replica string) string {
	return replica + "." + group + "." + namespace + ".svc"
}

// Mode is the availability mode in SQL Server's words; an unset one is synchronous, the default of the API.
func Mode(m v1alpha1.AvailabilityMode) ag.Mode {
	switch m {
	case v1alpha1.AsynchronousCommit:
		return ag.ModeAsynchronous
	case v1alpha1.ConfigurationOnly:
		return ag.ModeConfigurationOnly
	case v1alpha1.SynchronousCommit, "":
	}
	return ag.ModeSynchronous
}

// Request is the order in the resource's annotation, or nil. Handled tells whether it was answered already.
func Request(g *v1alpha1.SQLServerAvailabilityGroup) (*ag.Request, error) {
	r, err := v1alpha1.ParseRequest(g.Annotations[v1alpha1.AnnotationRequest])
	if r == nil || err != nil {
		return nil, err
	}
	out := &ag.Request{
		ID: r.ID, Kind: string(r.Kind), Target: r.Target, ExpectedPrimary: r.ExpectedPrimary, ExpectedSequence: r.ExpectedSequence,
		AllowDataLoss: r.AllowDataLoss, MaxLossSeconds: r.MaxLossSeconds, By: r.By, Reason: r.Reason,
	}
	if r.At != nil {
		out.At = r.At.Time
	}
	return out, nil
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
