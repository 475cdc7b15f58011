package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Permissions is docs/reference/permissions.md.
func Permissions(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(Notice + `# Permissions

Who runs a verb needs these permissions of the Kubernetes API, in the namespace of the group unless the
table says cluster. A missing optional permission costs one line of the output. Ready-made roles, which
hold exactly these: [deploy/rbac](../../deploy/rbac).

| Role | For |
| --- | --- |
| ` + "`kubectl-mssql-view`" + ` | verbs that change nothing |
| ` + "`kubectl-mssql-operate`" + ` | also the verbs that change groups and instances; no passwords |
| ` + "`kubectl-mssql-data`" + ` | also ` + "`sql`" + `: reads Secrets and reaches the servers, so it is as good as sa |

` + "`install`, `upgrade` and `uninstall`" + ` need cluster-admin: Kubernetes lets nobody grant a role that they do not have.
No verb of the plugin needs ` + "`pods/exec`" + `.

## Verbs
`)
	for _, p := range Pages(root) {
		if p.Need == nil {
			continue
		}
		role := "`kubectl-mssql-" + string(p.Need.Level) + "`"
		if p.Need.Level == rights.Install {
			role = "`cluster-admin`"
		}
		if len(p.Need.Rules) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\nRole: %s\n\n", p.Path, role)
		permissions(&b, *p.Need)
	}
	b.WriteString("\n## The operator\n")
	for _, set := range manifests.Permissions() {
		fmt.Fprintf(&b, "\n### %s\n\n| Verbs | Resources | Why |\n| --- | --- | --- |\n", set.Where)
		for _, r := range set.Rules {
			var names []string
			for _, res := range r.Resources {
				names = append(names, "`"+rights.Rule{Group: r.Groups[0], Resource: res}.Name()+"`")
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(r.Verbs, ", "), strings.Join(names, ", "), cell(r.Why))
		}
	}
	return b.String()
}

// Roles are the files of deploy/rbac: one ClusterRole a level, to be bound in a
// namespace or in the cluster, and for the cluster-scoped rest a second one.
func Roles() (map[string]string, error) {
	levels := map[string][]rights.Level{
		"view":    {rights.View},
		"operate": {rights.View, rights.Operate},
		"data":    {rights.View, rights.Operate, rights.Data},
	}
	out := map[string]string{}
	for name, with := range levels {
		roles := []*rbacv1.ClusterRole{clusterRole("kubectl-mssql-"+name, rights.Union(rights.InNamespace, with...))}
		if wide := rights.Union(rights.InCluster, with...); len(wide) > 0 {
			roles = append(roles, clusterRole("kubectl-mssql-"+name+"-cluster", wide))
		}
		var b strings.Builder
		b.WriteString("# Generated from the command tree by `make generate`; do not edit.\n")
		b.WriteString("# Bind the first with a RoleBinding in the namespace of the groups, the second with a ClusterRoleBinding.\n")
		for _, r := range roles {
			text, err := yaml.Marshal(r)
			if err != nil {
				return nil, fmt.Errorf("write the role %s: %w", r.Name, err)
			}
			b.WriteString("---\n" + string(text))
		}
		out[name+".yaml"] = b.String()
	}
	return out, nil
}

func clusterRole(name string, rules []rights.Rule) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			manifests.LabelPart: manifests.LabelPartValue, "app.kubernetes.io/component": "plugin",
		}},
	}
	for _, rule := range rules {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{rule.Group}, Resources: []string{rule.Resource}, Verbs: rule.Verbs})
	}
	return r
}
