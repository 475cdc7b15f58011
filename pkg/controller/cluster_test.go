package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	reconcileRequest = reconcile.Request
	reconcileResult  = reconcile.Result
)

func extract(list client.ObjectList) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, i := range items {
		if o, ok := i.(client.Object); ok {
			out = append(out, o)
		}
	}
	return out, nil
}

func mustWatch(t *testing.T, a apiServer) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(a.cfg, client.Options{Scheme: a.cli.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (a apiServer) storageClass(t *testing.T, expand bool) string {
	t.Helper()
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "class-"}, Provisioner: "example.com/none", AllowVolumeExpansion: ptr.To(expand)}
	if err := a.cli.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c.Name
}

// bind does what a provisioner and the volume controller do.
func (a apiServer) bind(t *testing.T, ns, name string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, claim); err != nil {
		t.Fatal(err)
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{GenerateName: "volume-"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: size}, AccessModes: claim.Spec.AccessModes,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: *claim.Spec.StorageClassName,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: string(claim.UID)}},
		ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: ns, Name: name, UID: claim.UID},
	}}
	if err := a.cli.Create(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	before := claim.DeepCopy()
	claim.Spec.VolumeName = volume.Name
	if err := a.cli.Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	before = claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size.String())}
	claim.Status.AccessModes = claim.Spec.AccessModes
	if err := a.cli.Status().Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
