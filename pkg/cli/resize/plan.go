package resize

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// judge is the safety gate and the plan.
func (o *Options) judge(ctx context.Context, want *api.SQLServerAvailabilityGroup, rolls, grows bool) (*change.Plan, error) {
	g := o.Group
	p := &change.Plan{Title: fmt.Sprintf("Resize %s/%s: %s", g.Namespace, g.Name, o.wish()), Level: change.Outage, Word: g.Name}
	if grows {
		if err := o.judgeStorage(ctx, p, &g.Spec.ServerSpec, "the data volume of every replica"); err != nil {
			return nil, err
		}
	}
	if rolls {
		if err := o.judgeRolling(p, want); err != nil {
			return nil, err
		}
	}
	p.Add("after", "the operator goes on without this command")
	return p, nil
}

func (o *Options) judgeStorage(ctx context.Context, p *change.Plan, spec *api.ServerSpec, whose string) error {
	now := spec.Storage.DataVolumeSize
	if o.storage.Cmp(now) < 0 {
		return exit.Errorf(exit.Refused, "to get smaller volumes make a new group, or reduce the files inside",
			"refused: the volumes have %s and shall have %s: Kubernetes cannot make a volume smaller", now.String(), o.storage.String())
	}
	expansion, err := o.expandable(ctx, spec.Storage.StorageClassName)
	if err != nil {
		return err
	}
	p.Add("storage", "%s grows from %s to %s; it never shrinks again", whose, now.String(), o.storage.String())
	p.Add("checks", "%s", expansion)
	p.Add("effect", "no outage where the driver grows a volume in use; where a file system grows only at mount, the pod is replaced "+
		"in rolling order; a driver that refuses a volume in use is told as an error")
	return nil
}

// expandable asks the StorageClass. Whoever may not read it learns it from the operator.
func (o *Options) expandable(ctx context.Context, name *string) (string, error) {
	var classes []storagev1.StorageClass
	if name != nil {
		var class storagev1.StorageClass
		err := o.Client.Get(ctx, client.ObjectKey{Name: *name}, &class)
		switch {
		case apierrors.IsNotFound(err):
			return "", exit.Errorf(exit.Refused, "kubectl get storageclass", "refused: StorageClass %s is not there any more", *name)
		case apierrors.IsForbidden(err):
			return "the operator asks the StorageClass whether it can grow: you may not read it", nil
		case err != nil:
			return "", fmt.Errorf("read StorageClass %s: %w", *name, err)
		}
		classes = append(classes, class)
	} else {
		// The claims have the class that was the default when they were made; the operator knows which.
		var list storagev1.StorageClassList
		if err := o.Client.List(ctx, &list); err != nil {
			return "the operator asks the StorageClass whether it can grow: you may not read it", nil //nolint:nilerr // a courtesy
		}
		for _, c := range list.Items {
			if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
				classes = append(classes, c)
			}
		}
	}
	if len(classes) == 0 {
		return "the operator asks the claims' StorageClass whether it can grow", nil
	}
	class := classes[0]
	if class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion {
		return "", exit.Errorf(exit.Refused, "if its driver can do it, set it: kubectl patch storageclass "+class.Name+` -p '{"allowVolumeExpansion":true}'`,
			"refused: StorageClass %s does not set allowVolumeExpansion", class.Name)
	}
	return "StorageClass " + class.Name + " allows expansion", nil
}

func (o *Options) judgeRolling(p *change.Plan, want *api.SQLServerAvailabilityGroup) error {
	g := o.Group
	if !g.Status.InitializationComplete {
		p.Add("effect", "the servers start with it")
		return nil
	}
	primary := g.Status.PrimaryReplica
	o.memoryLine(p, &want.Spec.ServerSpec)
	switch {
	case change.DataReplicas(g) == 1:
		p.Add("effect", "writes stop until the server is up again: there is no other replica")
		return nil
	case primary == "":
		p.Add("effect", "nobody is primary now: pods are replaced once somebody is")
	case len(change.Judge(g, primary).Successors) == 0:
		p.Add("effect", "secondaries first; the primary %s is replaced when a replica can take over without loss, which none can now", primary)
	default:
		p.Add("effect", "%s", change.MoveEffect(g))
	}
	p.Add("order", "%s", change.OrderText(g))
	for _, name := range change.Order(g) {
		w := change.Judge(g, name)
		if text := w.Describe(); text != "" && !w.Primary {
			p.Add("writes", "while %s is away: %s", name, text)
			break
		}
	}
	for _, s := range g.Status.ReplicaStatuses {
		if s.Fenced {
			p.Add("waits", "%s is fenced: the others are replaced when it is back", s.Name)
		}
	}
	return nil
}

// memoryLine says what SQL Server itself may take then.
func (o *Options) memoryLine(p *change.Plan, want *api.ServerSpec) {
	if o.memory == nil {
		return
	}
	if fixed, ok := want.MSSQLConf["memory.memorylimitmb"]; ok {
		p.Add("memory", "%s; SQL Server itself takes up to %s MB, which spec.mssqlConf fixes and this does not change", o.memory.String(), fixed)
		return
	}
	p.Add("memory", "%s; SQL Server itself takes up to %d MB", o.memory.String(), want.MemoryLimitMB())
}

// wish in the user's words.
func (o *Options) wish() string {
	var parts []string
	if o.storage != nil {
		parts = append(parts, "storage "+o.storage.String())
	}
	if o.cpu != nil {
		parts = append(parts, "cpu "+o.cpu.String())
	}
	if o.memory != nil {
		parts = append(parts, "memory "+o.memory.String())
	}
	return strings.Join(parts, ", ")
}

// patch is what is sent, as a merge patch.
func (o *Options) patch(was *api.ServerSpec) map[string]any {
	spec := map[string]any{}
	if o.storage != nil {
		spec["storage"] = map[string]any{"dataVolumeSize": o.storage.String()}
	}
	requests, limits := map[string]any{}, map[string]any{}
	if o.memory != nil {
		requests["memory"], limits["memory"] = o.memory.String(), o.memory.String()
	}
	if o.cpu != nil {
		requests["cpu"] = o.cpu.String()
		if _, limited := was.Resources.Limits["cpu"]; limited {
			limits["cpu"] = o.cpu.String()
		}
	}
	resources := map[string]any{}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	if len(resources) > 0 {
		spec["resources"] = resources
	}
	return map[string]any{"spec": spec}
}

func (o *Options) patchText(was *api.ServerSpec) string {
	b, err := json.Marshal(o.patch(was))
	if err != nil { // maps of strings always marshal
		return ""
	}
	return string(b)
}
