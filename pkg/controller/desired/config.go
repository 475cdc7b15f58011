package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// ConfigMap holds the instance manager's file under the given key.
func (s Server) ConfigMap(key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: s.meta(v1alpha1.ConfigMapName(s.Name)),
		Data:       map[string]string{key: text},
	}
}
