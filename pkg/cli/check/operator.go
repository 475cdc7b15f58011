package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/skew"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// leaderFresh: the leader renews every 2 s, and another one takes over after 15 s.
const leaderFresh = 20 * time.Second

// definitions: does the API server serve our kinds, in versions that are defined?
func (ch *Checker) definitions(ctx context.Context) []Row {
	s := &section{group: "Resource definitions"}
	crds, err := manifests.CRDs()
	if err != nil {
		s.unseen("definitions", err)
		return s.rows
	}
	for _, u := range crds {
		plural, _, _ := strings.Cut(u.GetName(), ".")
		var crd apiextensionsv1.CustomResourceDefinition
		err := ch.Client.Get(ctx, client.ObjectKey{Name: u.GetName()}, &crd)
		switch {
		case apierrors.IsNotFound(err):
			s.fail(CodeCRDMissing, plural, "not defined", ch.Self+" install")
		case err != nil:
			s.unseen(plural, err)
		default:
			judgeDefinition(s, plural, &crd)
		}
	}
	return s.rows
}

func judgeDefinition(s *section, plural string, crd *apiextensionsv1.CustomResourceDefinition) {
	if !manifests.Established(crd) {
		why := "the API server does not serve it"
		for _, c := range crd.Status.Conditions {
			if c.Status != apiextensionsv1.ConditionTrue && c.Message != "" {
				why += ": " + c.Message
			}
		}
		s.fail(CodeCRDMissing, plural, why, "kubectl describe crd "+crd.Name)
		return
	}
	var defined, deprecated []string
	for _, v := range crd.Spec.Versions {
		defined = append(defined, v.Name)
		if v.Deprecated {
			deprecated = append(deprecated, v.Name)
		}
	}
	if lost := Lost(crd.Status.StoredVersions, defined); len(lost) > 0 {
		s.fail(CodeStoredVersion, plural, "stored as "+strings.Join(lost, ", ")+", which is not defined", "rewrite all objects before the next upgrade")
		return
	}
	text := "served, stored as " + strings.Join(crd.Status.StoredVersions, ", ")
	if len(deprecated) > 0 {
		text += "; deprecated: " + strings.Join(deprecated, ", ")
	}
	s.ok(plural, text)
}

// operators: every installation that is found.
func (ch *Checker) operators(ctx context.Context, server Server) []Row {
	found, err := installation.Find(ctx, ch.Client)
	if err != nil {
		s := &section{group: "Operator"}
		s.unseen("operators", err)
		return s.rows
	}
	if len(found) == 0 {
		s := &section{group: "Operator"}
		s.fail(CodeNotInstalled, "operator", "none was found", ch.Self+" install")
		return s.rows
	}
	var rows []Row
	for _, i := range found {
		rows = append(rows, ch.operator(ctx, server, i, found)...)
	}
	return rows
}

func (ch *Checker) operator(ctx context.Context, server Server, i installation.Installation, all []installation.Installation) []Row {
	s := &section{group: "Operator in " + i.Namespace}
	switch v := skew.Of(i); {
	case v.Level == skew.Incompatible:
		s.fail(CodeSkew, "version", v.Message, v.Hint)
	case v.Level == skew.Apart:
		s.warn(CodeSkew, "version", v.Message, v.Hint)
	case v.Message == "":
		s.ok("version", "image "+i.Image+": its tag is no version to compare with")
	default:
		s.ok("version", v.Message)
	}
	for _, other := range all {
		if both := i.Overlaps(other.WatchNamespaces()); other.Namespace != i.Namespace && both != "" {
			s.fail(CodeOtherOperator, "other operator", fmt.Sprintf("the one in namespace %s watches %s too", other.Namespace, both), "uninstall one of them, or separate their --watch-namespaces")
		}
	}
	if i.Owner != nil {
		s.ok("managed by", i.Owner.String()+": "+i.Owner.Upgrade)
	} else if i.Settings == nil {
		s.warn(CodeNoSettings, "settings", "not known: "+i.SettingsError, ch.Self+" install with the options that it shall have")
	}
	ch.controllers(ctx, s, i)
	ch.leader(ctx, s, server, i.Namespace)
	ch.rules(ctx, s, i)
	return s.rows
}

func (ch *Checker) controllers(ctx context.Context, s *section, i installation.Installation) {
	ready, wanted := i.Replicas()
	if ready == wanted && wanted > 0 {
		s.ok("controllers", fmt.Sprintf("%d of %d ready", ready, wanted))
		return
	}
	text := fmt.Sprintf("%d of %d ready", ready, wanted)
	var pods corev1.PodList
	if err := ch.Client.List(ctx, &pods, client.InNamespace(i.Namespace), client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err == nil {
		for _, p := range pods.Items {
			if why := installation.PodWaits(&p); why != "" {
				text += "; " + p.Name + ": " + why
			}
		}
	}
	hint := "kubectl -n " + i.Namespace + " describe pods"
	if ready > 0 {
		s.warn(CodeNotReady, "controllers", text, hint)
		return
	}
	s.fail(CodeNotReady, "controllers", text, hint)
}

// leader: who holds the lock, and did the API server take in a renewal lately? Both
// times are the API server's own.
func (ch *Checker) leader(ctx context.Context, s *section, server Server, namespace string) {
	var l coordinationv1.Lease
	err := ch.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, &l)
	switch {
	case apierrors.IsNotFound(err):
		s.fail(CodeLeaderLock, "leader", "nobody has ever taken the lock "+manifests.Name, "see the logs of the controllers")
		return
	case err != nil:
		s.unseen("leader", err)
		return
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		s.fail(CodeLeaderLock, "leader", "the lock is free: nobody leads", "see the logs of the controllers")
		return
	}
	if written, ok := renewal.Written(l.ManagedFields); ok && !server.Date.IsZero() {
		if age := server.Date.Sub(written); age > leaderFresh {
			s.fail(CodeLeaderLock, "leader", fmt.Sprintf("%s has not renewed the lock for %s", *l.Spec.HolderIdentity, age.Round(time.Second)), "see the logs of the controllers")
			return
		}
	}
	s.ok("leader", *l.Spec.HolderIdentity)
}

// rules: does every role of the installation hold what this version renders?
func (ch *Checker) rules(ctx context.Context, s *section, i installation.Installation) {
	o := manifests.Default()
	o.Namespace, o.WatchNamespaces = i.Namespace, i.WatchNamespaces()
	objects, err := manifests.Render(o)
	if err != nil {
		s.unseen("roles", err)
		return
	}
	checked := 0
	var missing []string
	for _, u := range objects {
		var want, have rbacv1.ClusterRole
		switch u.GetKind() {
		case "ClusterRole", "Role": // both have the same rules field
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &want); err != nil {
			s.unseen("roles", err)
			return
		}
		live := u.DeepCopy()
		err := ch.Client.Get(ctx, client.ObjectKeyFromObject(u), live)
		if apierrors.IsNotFound(err) {
			missing = append(missing, manifests.Describe(u)+" is not there")
			continue
		}
		if err != nil {
			s.unseen("roles", err)
			return
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &have); err != nil {
			s.unseen("roles", err)
			return
		}
		checked++
		for _, gap := range lacking(want.Rules, have.Rules) {
			missing = append(missing, manifests.Describe(u)+" lacks "+gap)
		}
	}
	if len(missing) > 0 {
		s.fail(CodeOperatorRules, "roles", strings.Join(missing, "; "), ch.Self+" install or upgrade as a cluster administrator")
		return
	}
	s.ok("roles", fmt.Sprintf("%d roles hold every rule that this version needs", checked))
}

// lacking lists verbs and resources that the wanted rules grant and the present ones do not.
func lacking(want, have []rbacv1.PolicyRule) []string {
	covers := func(list []string, v string) bool { return slices.Contains(list, v) || slices.Contains(list, "*") }
	var out []string
	for _, w := range want {
		for _, g := range w.APIGroups {
			for _, r := range w.Resources {
				for _, v := range w.Verbs {
					if !slices.ContainsFunc(have, func(h rbacv1.PolicyRule) bool {
						return len(h.ResourceNames) == 0 && covers(h.APIGroups, g) && covers(h.Resources, r) && covers(h.Verbs, v)
					}) {
						name := v + " " + r
						if g != "" {
							name += "." + g
						}
						out = append(out, name)
					}
				}
			}
		}
	}
	return out
}
