package desired

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// ServiceAccount of the pods. Its token is mounted by the pod, not by default.
func (s Server) ServiceAccount() *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   s.meta(v1alpha1.ServiceAccountName(s.Name)),
		AutomountServiceAccountToken: &no,
	}
}

// Role lets the pods read their own resource and renew their own Lease, and nothing else.
func (s Server) Role() *rbacv1.Role {
	resource := "sqlserverinstances"
	if s.Group != nil {
		resource = "sqlserveravailabilitygroups"
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{resource},
		ResourceNames: []string{s.Name}, Verbs: []string{"get"},
	}}
	if s.External() {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{v1alpha1.LeaseName(s.Name)}, Verbs: []string{"get", "update", "watch"},
		})
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: s.meta(v1alpha1.ServiceAccountName(s.Name)),
		Rules:      rules,
	}
}

// RoleBinding of both.
func (s Server) RoleBinding() *rbacv1.RoleBinding {
	name := v1alpha1.ServiceAccountName(s.Name)
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: s.meta(name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: s.Namespace}},
	}
}
