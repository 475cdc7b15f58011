package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SQLServerInstanceSpec is one standalone server.
// +kubebuilder:validation:XValidation:rule="self.edition == oldSelf.edition",message="edition is immutable: create a new instance and move the data"
// +kubebuilder:validation:XValidation:rule="self.port == oldSelf.port",message="port is immutable"
type SQLServerInstanceSpec struct {
	ServerSpec `json:",inline"`
	// Service that clients connect to; <name>-client when no name is given.
	// +kubebuilder:default={}
	Service ServiceSpec `json:"service,omitempty"`
}

// SQLServerInstanceStatus is what the controller sees.
type SQLServerInstanceStatus struct {
	// ObservedGeneration of the spec that this status speaks of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase in one word: Pending, Starting, Running, Failed.
	Phase Phase `json:"phase,omitempty"`
	// Reason is the one sentence behind the phase.
	Reason string `json:"reason,omitempty"`
	// Version of SQL Server that runs, for example 16.0.4195.2.
	Version string `json:"version,omitempty"`
	// Endpoint that clients use, host:port inside the cluster.
	Endpoint string `json:"endpoint,omitempty"`
	// Volume is its data volume.
	Volume *VolumeStatus `json:"volume,omitempty"`
	// LastRequest answers the request annotation.
	LastRequest *LastRequestStatus `json:"lastRequest,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SQLServerInstance is one standalone SQL Server.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sqli,categories=mssql
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50",message="the name may have at most 50 characters: its children's names are longer and may have 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must start with a letter and hold only a-z, 0-9 and -"
type SQLServerInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SQLServerInstanceSpec   `json:"spec"`
	Status SQLServerInstanceStatus `json:"status,omitempty"`
}

// SQLServerInstanceList is a list of instances.
// +kubebuilder:object:root=true
type SQLServerInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SQLServerInstance `json:"items"`
}
