package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
)

// resizeAgain is how often a growing volume is looked at, beside the events of its claim.
const resizeAgain = 15 * time.Second

// phaseStorage keeps the claims of the data volumes. It comes before everything that
// needs a server: a full disk must be able to grow while nothing else works.
func (s *shared) phaseStorage(ctx context.Context, sc *scope) error {
	var errs []error
	for _, replica := range sc.server.Replicas {
		if err := s.claim(ctx, sc, replica); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *shared) claim(ctx context.Context, sc *scope, replica string) error {
	want := sc.server.DataClaim(replica)
	live := &corev1.PersistentVolumeClaim{}
	err := s.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		// The cache holds claims with our labels only.
		err = s.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	}
	if apierrors.IsNotFound(err) {
		if sc.fatal || sc.paused {
			return nil
		}
		if err := s.Create(ctx, want, client.FieldOwner(fieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create claim %s: %w", want.Name, err)
		}
		sc.claims[replica] = want
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", want.Name, err)
	}
	sc.claims[replica] = live
	if live.DeletionTimestamp != nil || sc.paused {
		return nil
	}
	if err := s.grow(ctx, sc, replica, want, live); err != nil {
		return err
	}
	return s.reclaimPolicy(ctx, sc, live)
}

// grow raises the request of a claim that is smaller than the spec asks, where its class allows it.
func (s *shared) grow(ctx context.Context, sc *scope, replica string, want, live *corev1.PersistentVolumeClaim) error {
	size := want.Spec.Resources.Requests[corev1.ResourceStorage]
	requested := live.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity, bound := live.Status.Capacity[corev1.ResourceStorage]
	if requested.Cmp(size) >= 0 {
		if bound && capacity.Cmp(requested) < 0 {
			sc.grows(replica, growth(live))
			sc.requeue(resizeAgain)
			if why := resizeError(live); why != "" {
				sc.cannotGrow = append(sc.cannotGrow, Problem{Reason: v1alpha1.ReasonResizeInProgress, Message: fmt.Sprintf("claim %s: %s", live.Name, why)})
			}
		}
		return nil
	}
	if !bound {
		// A claim that is not bound yet cannot be changed; it grows when it is.
		return nil
	}
	allowed, why, err := s.expandable(ctx, live)
	if err != nil {
		return err
	}
	if !allowed {
		sc.volumeNotes[replica] = why
		sc.cannotGrow = append(sc.cannotGrow, Problem{Reason: v1alpha1.ReasonExpansionUnsupported, Message: fmt.Sprintf(
			"claim %s has %s and shall have %s, but %s", live.Name, requested.String(), size.String(), why)})
		return nil
	}
	before := live.DeepCopy()
	live.Spec.Resources.Requests[corev1.ResourceStorage] = size
	if err := s.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("grow claim %s to %s: %w", live.Name, size.String(), err)
	}
	sc.grows(replica, growth(live))
	sc.requeue(resizeAgain)
	s.event(sc.obj, corev1.EventTypeNormal, v1alpha1.EventVolumeExpanding, "Expand", "claim %s grows from %s to %s", live.Name, requested.String(), size.String())
	return nil
}

// expandable asks the claim's StorageClass.
func (s *shared) expandable(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, string, error) {
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return false, "it has no StorageClass that could expand it", nil
	}
	name := *claim.Spec.StorageClassName
	var class storagev1.StorageClass
	err := s.Live.Get(ctx, client.ObjectKey{Name: name}, &class)
	switch {
	case apierrors.IsNotFound(err):
		return false, fmt.Sprintf("StorageClass %s is not there", name), nil
	case err != nil:
		return false, "", fmt.Errorf("read StorageClass %s: %w", name, err)
	case class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion:
		return false, fmt.Sprintf("StorageClass %s does not set allowVolumeExpansion", name), nil
	}
	return true, "", nil
}

// reclaimPolicy is patched onto the bound volume, so that the class's default does
// not decide about data. A volume is looked at once in the life of this process.
func (s *shared) reclaimPolicy(ctx context.Context, sc *scope, claim *corev1.PersistentVolumeClaim) error {
	want := sc.server.Spec.Storage.ReclaimPolicy
	if want == "" {
		want = corev1.PersistentVolumeReclaimRetain
	}
	name := claim.Spec.VolumeName
	if claim.Status.Phase != corev1.ClaimBound || name == "" {
		return nil
	}
	if done, ok := s.reclaimed.Load(name); ok && done == want {
		return nil
	}
	var volume corev1.PersistentVolume
	if err := s.Live.Get(ctx, client.ObjectKey{Name: name}, &volume); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			s.reclaimed.Store(name, want)
			return nil
		}
		return fmt.Errorf("read volume %s: %w", name, err)
	}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return nil
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != want {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, want))
		if err := s.Patch(ctx, &volume, patch, client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("set the reclaim policy of volume %s to %s: %w", name, want, err)
		}
	}
	s.reclaimed.Store(name, want)
	return nil
}

// claimOf is what the workload needs to know of a replica's claim, read from the API server.
func (s *shared) claimOf(ctx context.Context, namespace, replica string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: desired.DataClaimName(replica)}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read claim %s: %w", desired.DataClaimName(replica), err)
	}
	return claim, nil
}
