package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// DataClaimName is the claim of a replica's data volume.
func DataClaimName(replica string) string { return v1alpha1.VolumeData + "-" + replica }

// DataClaim is the claim of a replica's data volume. It has no owner: a volume
// outlives its pod and its resource; nothing deletes it but a person.
func (s Server) DataClaim(replica string) *corev1.PersistentVolumeClaim {
	size := s.Spec.Storage.DataVolumeSize
	if size.IsZero() {
		size = resource.MustParse("10Gi")
	}
	modes := s.Spec.Storage.AccessModes
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: DataClaimName(replica), Namespace: s.Namespace, Labels: s.ReplicaLabels(replica),
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: s.Spec.Storage.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
}
