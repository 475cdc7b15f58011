package desired

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Server is what an availability group and a standalone instance have in common:
// one shape from which all objects are built.
type Server struct {
	Kind      string
	Namespace string
	Name      string
	UID       types.UID
	Spec      *v1alpha1.ServerSpec
	// Replicas are the names of the pods by ordinal.
	Replicas []string
	// Group is the availability group, or nil for a standalone instance.
	Group *v1alpha1.SQLServerAvailabilityGroup
	// Instance is the standalone instance, or nil.
	Instance *v1alpha1.SQLServerInstance
}

// ForGroup is the shape of an availability group.
func ForGroup(g *v1alpha1.SQLServerAvailabilityGroup) Server {
	return Server{
		Kind: KindGroup, Namespace: g.Namespace, Name: g.Name, UID: g.UID,
		Spec: &g.Spec.ServerSpec, Replicas: g.ReplicaNames(), Group: g,
	}
}

// ForInstance is the shape of a standalone instance.
func ForInstance(i *v1alpha1.SQLServerInstance) Server {
	return Server{
		Kind: KindInstance, Namespace: i.Namespace, Name: i.Name, UID: i.UID,
		Spec: &i.Spec.ServerSpec, Replicas: []string{i.ReplicaName()}, Instance: i,
	}
}

// Kinds of the custom resources.
const (
	KindGroup    = "SQLServerAvailabilityGroup"
	KindInstance = "SQLServerInstance"
)

// External tells whether the group has an external cluster manager, and so a Lease.
func (s Server) External() bool {
	return s.Group != nil && s.Group.Spec.ClusterType != v1alpha1.ClusterTypeNone
}

// Port of the TDS listener.
func (s Server) Port() int32 {
	if s.Spec.Port == 0 {
		return v1alpha1.PortTDS
	}
	return s.Spec.Port
}

// EndpointPort of the database mirroring endpoint.
func (s Server) EndpointPort() int32 {
	if s.Group == nil || s.Group.Spec.EndpointPort == 0 {
		return v1alpha1.PortEndpoint
	}
	return s.Group.Spec.EndpointPort
}

// Labels of every object of this resource.
func (s Server) Labels() map[string]string {
	l := map[string]string{
		v1alpha1.LabelName:      v1alpha1.AppName,
		v1alpha1.LabelInstance:  s.Name,
		v1alpha1.LabelComponent: s.component(),
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		v1alpha1.LabelApp:       s.Name,
	}
	if s.Group != nil {
		l[v1alpha1.LabelAG] = s.Name
	}
	return l
}

func (s Server) component() string {
	if s.Group != nil {
		return v1alpha1.ComponentAG
	}
	return v1alpha1.ComponentInstance
}

// ReplicaLabels are those of one replica's objects.
func (s Server) ReplicaLabels(replica string) map[string]string {
	l := s.Labels()
	l[v1alpha1.LabelReplica] = replica
	return l
}

// Selector of all pods of this resource.
func (s Server) Selector() map[string]string {
	return map[string]string{v1alpha1.LabelInstance: s.Name, v1alpha1.LabelComponent: s.component()}
}

// Owner makes the resource the owner, so that deleting it deletes the object.
func (s Server) Owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: s.Kind, Name: s.Name, UID: s.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

// meta of an object that belongs to the resource and goes with it.
func (s Server) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: s.Namespace, Labels: s.Labels(),
		OwnerReferences: []metav1.OwnerReference{s.Owner()},
	}
}

func mergeMaps(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

// MemoryLimitMB is the server's memory.memorylimitmb for the container's limit; 0 without one.
func (s Server) MemoryLimitMB() int64 { return s.Spec.MemoryLimitMB() }
