package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/measure"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// collectTimeout bounds one look, managers included.
const collectTimeout = 15 * time.Second

// Collector reads one resource and everything about it. The resource itself is needed;
// whatever else may not be read, or does not answer, costs one line.
type Collector struct {
	Client  client.Client
	Asker   measure.Asker
	Factory factory.Factory
	// Namespace, and whether the user named it, so that commands that we print name it too.
	Namespace string
	Explicit  bool
	// Verbose as -v counts it: from 1 the disruption budget is read, from 2 the events.
	Verbose int
}

// NewCollector makes one from the command line.
func NewCollector(f factory.Factory) (*Collector, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	asker, err := measure.New(config)
	if err != nil {
		return nil, err
	}
	ns, explicit, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	return &Collector{Client: c, Asker: asker, Factory: f, Namespace: ns, Explicit: explicit}, nil
}

func (c *Collector) suffix() string {
	if c.Explicit {
		return " -n " + c.Namespace
	}
	return ""
}

// Seen is one look: a group or an instance.
type Seen struct {
	Group    *Document
	Instance *InstanceDocument
}

// ExitCode of the verdict.
func (s Seen) ExitCode() int {
	if s.Group != nil {
		return s.Group.ExitCode
	}
	return s.Instance.ExitCode
}

// Level and Phase of the verdict.
func (s Seen) Level() Level {
	if s.Group != nil {
		return s.Group.Level
	}
	return s.Instance.Level
}

// Phase in a word.
func (s Seen) Phase() string {
	if s.Group != nil {
		return s.Group.Phase
	}
	return s.Instance.Phase
}

// around is what stands besides the resource.
type around struct {
	mu       sync.Mutex
	pods     []corev1.Pod
	podsRead bool
	lease    *coordinationv1.Lease
	// silent is for how long it had not been renewed when it was read.
	silent      time.Duration
	silentKnown bool
	operator    *Operator
	slices      []discoveryv1.EndpointSlice
	budget      *Budget
	events      []events.Event
	unseen      []Unseen
}

func (a *around) miss(source, verb, resource, namespace string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unseen = append(a.unseen, notSeen(source, verb, resource, namespace, err))
}

// notSeen names the missing verb when that is the cause.
func notSeen(source, verb, resource, namespace string, err error) Unseen {
	if apierrors.IsForbidden(err) {
		return Unseen{reasons.Code("Forbidden"), fmt.Sprintf("%s: you may not %s %s in namespace %s", source, verb, resource, namespace), source}
	}
	return Unseen{reasons.Code("NotMeasured"), fmt.Sprintf("%s: %s", source, firstLine(err)), source}
}

func firstLine(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Look reads everything, in two rounds: first the resource and what stands besides it,
// then all managers at once.
func (c *Collector) Look(ctx context.Context, name string) (Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	var a around
	var wg sync.WaitGroup
	wg.Go(func() { c.readPods(ctx, name, &a) })
	wg.Go(func() { c.readLease(ctx, name, &a) })
	wg.Go(func() { c.readOperator(ctx, &a) })
	wg.Go(func() { c.readSlices(ctx, name, &a) })
	if c.Verbose > 0 {
		wg.Go(func() { c.readBudget(ctx, name, &a) })
	}
	if c.Verbose > 1 {
		wg.Go(func() { c.readEvents(ctx, name, &a) })
	}
	group, instance, err := c.read(ctx, name)
	if err != nil {
		cancel()
		wg.Wait()
		return Seen{}, err
	}
	var pods []string
	if group != nil {
		pods = group.ReplicaNames()
	} else {
		pods = []string{instance.Name + "-0"}
	}
	answers := measure.All(ctx, c.Asker, c.Namespace, pods)
	wg.Wait()
	reports := c.reports(pods, answers, &a)
	taints := c.readTaints(ctx, a.pods)
	now := c.Factory.Clock().Now()
	if instance != nil {
		d := BuildInstance(InstanceInput{
			Instance: instance, Pods: podFacts(a.pods), PodsRead: a.podsRead, Reports: reports, Operator: a.operator, Now: now,
			Plugin: version.Get().Version, Self: c.Factory.Name(), NS: c.suffix(), Errors: a.unseen, Events: a.events, Taints: taints,
		})
		return Seen{Instance: &d}, nil
	}
	in := Input{
		Group: group, Reports: reports, Operator: a.operator, Now: now,
		Plugin: version.Get().Version, Self: c.Factory.Name(), NS: c.suffix(), Errors: a.unseen, Budget: a.budget, Events: a.events, Taints: taints,
	}
	if a.podsRead {
		in.Pods = podFacts(a.pods)
	}
	in.WritesLeadTo, in.LeadsKnown = leads(a.slices, group.ListenerName())
	if a.lease != nil {
		authority, problem := state.Decode(a.lease, string(group.UID))
		in.Lease = &LeaseFacts{Authority: authority, Problem: problem}
		if t := a.lease.Spec.RenewTime; t != nil {
			in.Lease.Renewed = t.Time
		}
		in.Lease.Silent, in.Lease.SilentKnown = a.silent, a.silentKnown
	}
	d := Build(in)
	return Seen{Group: &d}, nil
}

// read finds the group or instance of that name.
func (c *Collector) read(ctx context.Context, name string) (*api.SQLServerAvailabilityGroup, *api.SQLServerInstance, error) {
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}
	var g api.SQLServerAvailabilityGroup
	err := c.Client.Get(ctx, key, &g)
	switch {
	case err == nil:
		return &g, nil, nil
	case meta.IsNoMatchError(err):
		return nil, nil, exit.Errorf(exit.NotFound, c.Factory.Name()+" install", "the operator is not installed in this cluster")
	case !apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("read the availability group %s: %w", name, err)
	}
	var i api.SQLServerInstance
	err = c.Client.Get(ctx, key, &i)
	switch {
	case err == nil:
		return nil, &i, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil, exit.Errorf(exit.NotFound, c.Factory.Name()+" list shows what is there",
			"there is no availability group or instance %s in namespace %s", name, c.Namespace)
	}
	return nil, nil, fmt.Errorf("read the instance %s: %w", name, err)
}

func (c *Collector) readPods(ctx context.Context, name string, a *around) {
	var pods corev1.PodList
	err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelInstance: name, api.LabelManagedBy: api.ManagedBy})
	if err != nil {
		a.miss("pods", "list", "pods", c.Namespace, err)
		return
	}
	a.pods, a.podsRead = pods.Items, true
}

func (c *Collector) readLease(ctx context.Context, name string, a *around) {
	var l coordinationv1.Lease
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: api.LeaseName(name)}, &l)
	switch {
	case err == nil:
		a.lease = &l
		a.silent, a.silentKnown = renewal.Age(&l, c.Factory)
	case !apierrors.IsNotFound(err):
		a.miss("lease", "get", "leases.coordination.k8s.io", c.Namespace, err)
	}
}

func (c *Collector) readBudget(ctx context.Context, name string, a *around) {
	var b policyv1.PodDisruptionBudget
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &b)
	switch {
	case err == nil:
		a.budget = &Budget{Name: b.Name, Allowed: b.Status.DisruptionsAllowed, Healthy: b.Status.CurrentHealthy, Wanted: b.Status.DesiredHealthy}
	case !apierrors.IsNotFound(err): // a group of one, and an instance, have none
		a.miss("disruption budget", "get", "poddisruptionbudgets.policy", c.Namespace, err)
	}
}

func (c *Collector) readEvents(ctx context.Context, name string, a *around) {
	list, err := events.About(ctx, c.Client, c.Namespace, name)
	if err != nil {
		a.miss("events", "list", "events", c.Namespace, err)
		return
	}
	a.events = list
}

// readSlices reads where the Services lead. Where that may not be read, nothing is said of it.
func (c *Collector) readSlices(ctx context.Context, name string, a *around) {
	var list discoveryv1.EndpointSliceList
	if err := c.Client.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelInstance: name}); err == nil {
		a.slices = list.Items
	}
}

// leads are the ready pods behind a Service; known is false for one that has no slice at all.
func leads(list []discoveryv1.EndpointSlice, service string) (pods []string, known bool) {
	pods = []string{}
	for _, s := range list {
		if s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		known = true
		for _, e := range s.Endpoints {
			if (e.Conditions.Ready == nil || *e.Conditions.Ready) && e.TargetRef != nil && !slices.Contains(pods, e.TargetRef.Name) {
				pods = append(pods, e.TargetRef.Name)
			}
		}
	}
	slices.Sort(pods)
	return pods, known
}

// readOperator looks for the operator in all namespaces. Few may do that, and it is no
// loss: then nothing is said of it.
func (c *Collector) readOperator(ctx context.Context, a *around) {
	var list appsv1.DeploymentList
	if err := c.Client.List(ctx, &list, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		return
	}
	for _, d := range list.Items {
		o := Operator{Namespace: d.Namespace, Ready: d.Status.ReadyReplicas}
		if d.Spec.Replicas != nil {
			o.Replicas = *d.Spec.Replicas
		}
		if cs := d.Spec.Template.Spec.Containers; len(cs) > 0 {
			if i := strings.LastIndex(cs[0].Image, ":"); i > strings.LastIndex(cs[0].Image, "/") {
				o.Version = cs[0].Image[i+1:]
			}
		}
		if a.operator == nil || a.operator.Ready == 0 && o.Ready > 0 {
			a.operator = &o
		}
	}
	if a.operator == nil || len(list.Items) > 1 {
		return // of several, it is not known which one looks after this namespace
	}
	lock, err := renewal.ReadLock(ctx, c.Client, a.operator.Namespace, c.Factory)
	if err != nil {
		return
	}
	if a.operator.lock = lock; lock.Known {
		a.operator.Silent = inSeconds(lock.Age)
	}
}

// reports are the answers; what is missing is said once, not once a replica, when a
// permission is the cause.
func (c *Collector) reports(pods []string, answers map[string]measure.Answer, a *around) map[string]managerapi.Report {
	out := map[string]managerapi.Report{}
	forbidden := false
	for _, pod := range pods {
		x := answers[pod]
		switch {
		case errors.Is(x.Err, measure.ErrForbidden):
			forbidden = true
		case x.Err != nil:
			a.unseen = append(a.unseen, Unseen{reasons.Code("NotMeasured"), pod + ": " + firstLine(x.Err), "manager/" + pod})
		default:
			out[pod] = x.Report
			if x.Report.MeasureProblem != "" && x.Report.Role != "" {
				a.unseen = append(a.unseen, Unseen{reasons.Code("NotMeasured"), pod + ": " + x.Report.MeasureProblem, "manager/" + pod})
			}
		}
	}
	if forbidden {
		a.unseen = append(a.unseen, Unseen{
			reasons.Code("Forbidden"), fmt.Sprintf("queues, lag and seeding: %s in namespace %s", measure.ErrForbidden, c.Namespace), "managers",
		})
	}
	return out
}

func podFacts(pods []corev1.Pod) map[string]PodFacts {
	out := map[string]PodFacts{}
	for i := range pods {
		p := &pods[i]
		f := PodFacts{Created: p.CreationTimestamp.Time, Node: p.Spec.NodeName, Waiting: waiting(p)}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady {
				f.Ready, f.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
			}
		}
		out[p.Name] = f
	}
	return out
}

// pendingPod stands before the scheduler's words.
const pendingPod = "pod Pending: "

// waiting is what a pod waits for, in the words of whoever makes it wait.
func waiting(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return pendingPod + c.Message
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return strings.TrimSuffix(s.State.Waiting.Reason+": "+s.State.Waiting.Message, ": ")
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("container ended: %s, exit code %d", orWord(s.State.Terminated.Reason, "Error"), s.State.Terminated.ExitCode)
		}
	}
	if p.DeletionTimestamp != nil {
		return "pod is stopping"
	}
	return ""
}
