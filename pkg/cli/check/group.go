package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// resources checks the groups and instances of a namespace; a name limits it to one.
func (ch *Checker) resources(ctx context.Context, server Server, namespace, name string) []Row {
	where := &section{group: "Groups and instances"}
	var groups api.SQLServerAvailabilityGroupList
	if err := ch.Client.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		if !manifests.NoSuchKind(err) {
			where.unseen("availability groups", err)
		}
	}
	var instances api.SQLServerInstanceList
	if err := ch.Client.List(ctx, &instances, client.InNamespace(namespace)); err != nil {
		if !manifests.NoSuchKind(err) {
			where.unseen("instances", err)
		}
	}
	operators, operatorsErr := installation.Find(ctx, ch.Client)
	rows := where.rows
	found := false
	for i := range groups.Items {
		g := &groups.Items[i]
		if name != "" && g.Name != name {
			continue
		}
		found = true
		s := &section{group: "Availability group " + g.Namespace + "/" + g.Name}
		ch.watched(s, g.Namespace, operators, operatorsErr)
		judgeGroup(s, g, ch.Self)
		ch.authority(ctx, s, server, g)
		names := g.ReplicaNames()
		ch.common(ctx, s, server, g, &g.Spec.ServerSpec, names)
		rows = append(rows, s.rows...)
	}
	for i := range instances.Items {
		in := &instances.Items[i]
		if name != "" && in.Name != name {
			continue
		}
		found = true
		s := &section{group: "Instance " + in.Namespace + "/" + in.Name}
		ch.watched(s, in.Namespace, operators, operatorsErr)
		judgeInstance(s, in, ch.Self)
		ch.common(ctx, s, server, in, &in.Spec.ServerSpec, []string{in.ReplicaName()})
		rows = append(rows, s.rows...)
	}
	switch {
	case found || len(where.rows) > 0:
	case name != "":
		where.fail(CodeVerdict, name, "there is no availability group or instance of that name in namespace "+namespace, ch.Self+" status lists what is there")
		rows = append(rows, where.rows...)
	default:
		in := "namespace " + namespace
		if namespace == "" {
			in = "any namespace"
		}
		where.ok("none", "there is no group or instance in "+in)
		rows = append(rows, where.rows...)
	}
	return rows
}

func (ch *Checker) watched(s *section, namespace string, operators []installation.Installation, err error) {
	if err != nil || slices.ContainsFunc(operators, func(i installation.Installation) bool { return i.Watches(namespace) }) {
		return
	}
	s.fail(CodeUnwatched, "operator", "no operator watches namespace "+namespace, "add it to --watch-namespaces of an operator")
}

func judgeGroup(s *section, g *api.SQLServerAvailabilityGroup, self string) {
	status := self + " status " + g.Name + " -n " + g.Namespace
	verdict := string(g.Status.Phase)
	if g.Status.Reason != "" {
		verdict += ": " + g.Status.Reason
	}
	switch g.Status.Phase {
	case api.PhaseHealthy:
		s.ok("verdict", verdict)
	case api.PhaseBlocked, api.PhaseFailed, api.PhaseFailingOver:
		s.fail(CodeVerdict, "verdict", verdict, status)
	case "":
		s.warn(CodeVerdict, "verdict", "the operator has not looked at it yet", status)
	default:
		s.warn(CodeVerdict, "verdict", verdict, status)
	}
	if g.Status.ObservedGeneration != 0 && g.Status.ObservedGeneration < g.Generation {
		s.warn(CodeVerdict, "spec", "the newest change was not taken up yet", status)
	}
	var targets, refusals []string
	for _, r := range g.Status.ReplicaStatuses {
		switch {
		case r.Name == g.Status.PrimaryReplica:
		case r.FailoverReady:
			targets = append(targets, r.Name)
		case r.FailoverRefusal != "":
			refusals = append(refusals, r.Name+" "+r.FailoverRefusal)
		}
	}
	switch {
	case len(g.Spec.Replicas) < 2:
	case len(targets) > 0:
		s.ok("take-over", strings.Join(targets, ", ")+" could take over without loss")
	default:
		text := "no replica could take over without loss"
		if len(refusals) > 0 {
			text += ": " + strings.Join(refusals, "; ")
		}
		s.warn(CodeNotSafe, "take-over", text, self+" failover "+g.Name+" -n "+g.Namespace+" --dry-run")
	}
	deprecatedWriters(s, g.ManagedFields)
}

func judgeInstance(s *section, in *api.SQLServerInstance, self string) {
	verdict := string(in.Status.Phase)
	if in.Status.Reason != "" {
		verdict += ": " + in.Status.Reason
	}
	status := self + " status " + in.Name + " -n " + in.Namespace
	switch in.Status.Phase {
	case api.PhaseRunning:
		s.ok("verdict", verdict)
	case api.PhaseFailed:
		s.fail(CodeVerdict, "verdict", verdict, status)
	default:
		s.warn(CodeVerdict, "verdict", verdict, status)
	}
	deprecatedWriters(s, in.ManagedFields)
}

// deprecatedWriters names who writes in another version than the present one.
func deprecatedWriters(s *section, fields []metav1.ManagedFieldsEntry) {
	present := api.GroupVersion.String()
	var who []string
	for _, f := range fields {
		if f.APIVersion != present && strings.HasPrefix(f.APIVersion, api.Group+"/") {
			who = append(who, fmt.Sprintf("%s (%s)", f.Manager, f.APIVersion))
		}
	}
	if len(who) > 0 {
		s.warn(CodeDeprecatedAPI, "API version", "written in another version than "+present+" by "+strings.Join(who, ", "), "change the apiVersion there")
	}
}

// authority: the Lease that says who may write.
func (ch *Checker) authority(ctx context.Context, s *section, server Server, g *api.SQLServerAvailabilityGroup) {
	if !g.Status.InitializationComplete {
		return
	}
	name := api.LeaseName(g.Name)
	var l coordinationv1.Lease
	err := ch.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &l)
	switch {
	case apierrors.IsNotFound(err):
		s.fail(CodeNoLease, "Lease", name+" is not there: nobody may renew the write lease", ch.Self+" logs "+g.Name)
		return
	case err != nil:
		s.unseen("Lease", err)
		return
	}
	judgeLease(s, &l, g, server.Date, ch.Self)
}

// judgeLease compares two times of the API server's own clock: now, and the write of the newest renewal.
func judgeLease(s *section, l *coordinationv1.Lease, g *api.SQLServerAvailabilityGroup, now time.Time, self string) {
	a, why := state.Decode(l, string(g.UID))
	if !a.Exists {
		s.fail(CodeNoLease, "Lease", why, "the operator makes it anew; see "+self+" logs "+g.Name)
		return
	}
	limit := g.Spec.AutomaticFailover.Timing.Effective().D()
	written, ok := renewal.Written(l.ManagedFields)
	age := now.Sub(written).Round(time.Second)
	switch {
	case a.Holder.Zero():
		s.fail(CodeNotRenewed, "Lease", "nobody holds it: nobody may write", self+" status "+g.Name)
	case ok && !now.IsZero() && age > limit:
		s.fail(CodeNotRenewed, "Lease", fmt.Sprintf("%s has not renewed it for %s", a.Holder.Replica, age), self+" status "+g.Name)
	default:
		s.ok("Lease", fmt.Sprintf("held by %s, epoch %d", a.Holder.Replica, a.Epoch))
	}
	if a.NoWriteLease {
		s.warn(CodeNoWriteLease, "write lease", "SQL Server has none for this group (Msg 47116): a silent primary cannot be waited out", self+" explain "+CodeNoWriteLease)
	} else {
		s.ok("write lease", fmt.Sprintf("in use; a silent primary is waited out in %s", limit))
	}
}

// common is what groups and instances have alike: Secrets, volumes, pods.
func (ch *Checker) common(ctx context.Context, s *section, server Server, owner client.Object, spec *api.ServerSpec, replicas []string) {
	now := server.Date
	if now.IsZero() {
		now = server.Local
	}
	ch.secrets(ctx, s, owner, spec, replicas, now)
	ch.volumes(ctx, s, owner, replicas)
	ch.pods(ctx, s, owner, replicas)
	if len(replicas) > 1 {
		ch.budget(ctx, s, owner)
	}
}

func (ch *Checker) volumes(ctx context.Context, s *section, owner client.Object, replicas []string) {
	var claims corev1.PersistentVolumeClaimList
	if err := ch.Client.List(ctx, &claims, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{api.LabelInstance: owner.GetName(), api.LabelManagedBy: api.ManagedBy}); err != nil {
		s.unseen("volumes", err)
		return
	}
	classes := map[string]bool{}
	bound := 0
	for _, c := range claims.Items {
		if c.Status.Phase != corev1.ClaimBound {
			s.warn(CodeVolume, "volume "+c.Name, "is "+string(c.Status.Phase), "kubectl -n "+c.Namespace+" describe pvc "+c.Name)
			continue
		}
		bound++
		if c.Spec.StorageClassName != nil {
			classes[*c.Spec.StorageClassName] = true
		}
	}
	if bound < len(replicas) && bound == len(claims.Items) {
		s.warn(CodeVolume, "volumes", fmt.Sprintf("%d of %d claims are there", bound, len(replicas)), ch.Self+" status "+owner.GetName())
	}
	var stuck, grow []string
	for name := range classes {
		var sc storagev1.StorageClass
		if err := ch.Client.Get(ctx, client.ObjectKey{Name: name}, &sc); err != nil {
			s.unseen("class "+name, err)
			continue
		}
		if sc.AllowVolumeExpansion != nil && *sc.AllowVolumeExpansion {
			grow = append(grow, name)
		} else {
			stuck = append(stuck, name)
		}
	}
	slices.Sort(stuck)
	slices.Sort(grow)
	if len(stuck) > 0 {
		s.warn(CodeVolume, "growth", "volumes of class "+strings.Join(stuck, ", ")+" cannot grow", "watch the free space; a new group with another class is the way out")
	}
	if len(grow) > 0 {
		s.ok("growth", fmt.Sprintf("%d bound volumes; class %s can grow", bound, strings.Join(grow, ", ")))
	}
}

func (ch *Checker) pods(ctx context.Context, s *section, owner client.Object, replicas []string) {
	var pods corev1.PodList
	if err := ch.Client.List(ctx, &pods, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{api.LabelInstance: owner.GetName(), api.LabelManagedBy: api.ManagedBy}); err != nil {
		s.unseen("pods", err)
		return
	}
	judgePods(s, pods.Items, replicas)
}

func judgePods(s *section, pods []corev1.Pod, replicas []string) {
	ready := 0
	onNode := map[string][]string{}
	for i := range pods {
		p := &pods[i]
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		} else if why := installation.PodWaits(p); why != "" {
			s.warn(CodeNotReady, "pod "+p.Name, why, "kubectl -n "+p.Namespace+" describe pod "+p.Name)
		}
		if p.Spec.NodeName != "" {
			onNode[p.Spec.NodeName] = append(onNode[p.Spec.NodeName], p.Name)
		}
	}
	text := fmt.Sprintf("%d of %d ready", ready, len(replicas))
	if ready < len(replicas) {
		s.warn(CodeNotReady, "replicas", text, "")
	} else {
		s.ok("replicas", text)
	}
	if len(replicas) < 2 {
		return
	}
	var shared []string
	for node, names := range onNode {
		if len(names) > 1 {
			slices.Sort(names)
			shared = append(shared, strings.Join(names, " and ")+" on "+node)
		}
	}
	slices.Sort(shared)
	switch {
	case len(shared) > 0:
		s.warn(CodeSpread, "spread", strings.Join(shared, "; "), "one lost node takes them all; add nodes or relax affinity")
	case len(onNode) > 0:
		s.ok("spread", fmt.Sprintf("%d replicas on %d nodes", len(pods), len(onNode)))
	}
}

func (ch *Checker) budget(ctx context.Context, s *section, owner client.Object) {
	var list policyv1.PodDisruptionBudgetList
	if err := ch.Client.List(ctx, &list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{api.LabelInstance: owner.GetName()}); err != nil {
		s.unseen("budget", err)
		return
	}
	if len(list.Items) == 0 {
		s.warn(CodeBudget, "budget", "there is no PodDisruptionBudget", "see the operator's logs")
		return
	}
	b := list.Items[0]
	s.ok("budget", fmt.Sprintf("%s: %d of %d pods may be evicted now", b.Name, b.Status.DisruptionsAllowed, b.Status.ExpectedPods))
}
