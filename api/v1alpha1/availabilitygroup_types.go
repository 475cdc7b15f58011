package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterType of the availability group (FG 1.1).
// +kubebuilder:validation:Enum=EXTERNAL;NONE
type ClusterType string

const (
	ClusterTypeExternal ClusterType = "EXTERNAL"
	ClusterTypeNone     ClusterType = "NONE"
)

// AvailabilityMode of a replica.
// +kubebuilder:validation:Enum=SynchronousCommit;AsynchronousCommit;ConfigurationOnly
type AvailabilityMode string

const (
	SynchronousCommit  AvailabilityMode = "SynchronousCommit"
	AsynchronousCommit AvailabilityMode = "AsynchronousCommit"
	ConfigurationOnly  AvailabilityMode = "ConfigurationOnly"
)

// FailoverMode says whether a replica may be promoted automatically.
// +kubebuilder:validation:Enum=Automatic;Manual
type FailoverMode string

const (
	FailoverAutomatic FailoverMode = "Automatic"
	FailoverManual    FailoverMode = "Manual"
)

// Durability says what happens to the commit rule when too few secondaries answer (safety.md §4).
// +kubebuilder:validation:Enum=Preferred;Required
type Durability string

const (
	// DurabilityPreferred lowers k to what is there after relaxAfterSeconds and raises it again.
	DurabilityPreferred Durability = "Preferred"
	// DurabilityRequired never lowers k: writes wait.
	DurabilityRequired Durability = "Required"
)

// TimingProfile selects A, q, L and m of the write lease.
// +kubebuilder:validation:Enum=Balanced;Fast;Tolerant
type TimingProfile string

const (
	TimingBalanced TimingProfile = "Balanced"
	TimingFast     TimingProfile = "Fast"
	TimingTolerant TimingProfile = "Tolerant"
)

// AGReplicaSpec is one replica. Its pod and server are called <ag>-<index in the list>.
type AGReplicaSpec struct {
	// Name for people; the pod's name does not depend on it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// +kubebuilder:default=SynchronousCommit
	AvailabilityMode AvailabilityMode `json:"availabilityMode,omitempty"`
	// +kubebuilder:default=Automatic
	FailoverMode FailoverMode `json:"failoverMode,omitempty"`
	// ReadableSecondary lets clients read from this replica while it is a secondary.
	// +optional
	ReadableSecondary bool `json:"readableSecondary,omitempty"`
}

// DatabaseSpec is one database that shall be in the group.
type DatabaseSpec struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['master','model','msdb','tempdb'])",message="system databases cannot be in an availability group"
	Name string `json:"name"`
}

// TimingSpec sets the write lease's numbers (safety.md §2). Values left out come from the profile.
// It is immutable: a server keeps the numbers with which it started, and the wait after its loss must cover them.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="automaticFailover.timing is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.leaseSeconds) || !has(self.renewSeconds) || self.leaseSeconds >= 3 * self.renewSeconds",message="leaseSeconds must be at least three times renewSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.authoritySeconds) || !has(self.renewSeconds) || self.authoritySeconds >= 2 * self.renewSeconds",message="authoritySeconds must be at least twice renewSeconds plus the call time-out"
type TimingSpec struct {
	// +kubebuilder:default=Balanced
	Profile TimingProfile `json:"profile,omitempty"`
	// RenewSeconds is the period of Lease renewals.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RenewSeconds *int32 `json:"renewSeconds,omitempty"`
	// AuthoritySeconds (A): how old the newest proof may be when the write lease is renewed.
	// +optional
	// +kubebuilder:validation:Minimum=3
	AuthoritySeconds *int32 `json:"authoritySeconds,omitempty"`
	// StatementSeconds (q): how long a statement may be under way.
	// +optional
	// +kubebuilder:validation:Minimum=1
	StatementSeconds *int32 `json:"statementSeconds,omitempty"`
	// LeaseSeconds (L): WRITE_LEASE_VALIDITY.
	// +optional
	// +kubebuilder:validation:Minimum=5
	LeaseSeconds *int32 `json:"leaseSeconds,omitempty"`
	// MarginMilliseconds (m): for clock drift.
	// +optional
	// +kubebuilder:validation:Minimum=500
	MarginMilliseconds *int32 `json:"marginMilliseconds,omitempty"`
}

// AutomaticFailoverSpec is the policy of automatic failover.
type AutomaticFailoverSpec struct {
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// FailoverThresholdSeconds is how long the primary must be silent before it is suspected without proof of death.
	// It counts until A + L of the timing at most: then the write lease of a primary that does not renew has ended.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=10
	FailoverThresholdSeconds int32 `json:"failoverThresholdSeconds,omitempty"`
	// HealthThreshold is the depth of the sp_server_diagnostics check (FG 6).
	// +kubebuilder:default=system
	// +kubebuilder:validation:Enum=system;resource;query_processing
	HealthThreshold string `json:"healthThreshold,omitempty"`
	// HealthCheckIntervalSeconds between two diagnostics.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=5
	HealthCheckIntervalSeconds int32 `json:"healthCheckIntervalSeconds,omitempty"`
	// HealthCheckTimeoutSeconds of one diagnostics call; it takes about 5 s on a healthy server.
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=10
	HealthCheckTimeoutSeconds int32 `json:"healthCheckTimeoutSeconds,omitempty"`
	// HealthCheckFailures in a row before the server is beyond saving.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	HealthCheckFailures int32 `json:"healthCheckFailures,omitempty"`
	// FailsafeHoldOffSeconds: how long a primary that only its peers can see is left alone.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	FailsafeHoldOffSeconds int32 `json:"failsafeHoldOffSeconds,omitempty"`
	// AllowDataLoss permits a forced failover when no complete candidate is left after forceFailoverGracePeriodSeconds.
	// +optional
	AllowDataLoss bool `json:"allowDataLoss,omitempty"`
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=30
	ForceFailoverGracePeriodSeconds int32 `json:"forceFailoverGracePeriodSeconds,omitempty"`
	// MaxReplicationLagSeconds bounds what allowDataLoss may lose: a replica that may lack more, or of which it
	// is not known how far it was behind, is not forced.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxReplicationLagSeconds *int32 `json:"maxReplicationLagSeconds,omitempty"`
	// MinTimeBetweenFailoversSeconds damps failovers while the primary can still write.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	MinTimeBetweenFailoversSeconds int32 `json:"minTimeBetweenFailoversSeconds,omitempty"`
	// PrimaryStabilityWindowSeconds is how long a primary must have been up before fail-back.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	PrimaryStabilityWindowSeconds int32 `json:"primaryStabilityWindowSeconds,omitempty"`
	// Timing of the write lease.
	// +kubebuilder:default={}
	Timing TimingSpec `json:"timing,omitempty"`
}

// PreStopFailoverSpec is the hand-over when the primary's pod is told to stop.
type PreStopFailoverSpec struct {
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=5
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// SQLServerAvailabilityGroupSpec describes an availability group.
// +kubebuilder:validation:XValidation:rule="has(self.agName) == has(oldSelf.agName) && (!has(self.agName) || self.agName == oldSelf.agName)",message="agName is immutable: an availability group cannot be renamed"
// +kubebuilder:validation:XValidation:rule="self.clusterType == oldSelf.clusterType",message="clusterType is immutable"
// +kubebuilder:validation:XValidation:rule="self.edition == oldSelf.edition",message="edition is immutable"
// +kubebuilder:validation:XValidation:rule="self.port == oldSelf.port && self.endpointPort == oldSelf.endpointPort",message="port and endpointPort are immutable"
// +kubebuilder:validation:XValidation:rule="self.replicas.size() >= oldSelf.replicas.size()",message="replicas cannot be removed yet"
// +kubebuilder:validation:XValidation:rule="self.port != self.endpointPort",message="port and endpointPort must differ"
// +kubebuilder:validation:XValidation:rule="!has(self.requiredSynchronizedSecondariesToCommit) || self.requiredSynchronizedSecondariesToCommit <= self.replicas.filter(r, r.availabilityMode == 'SynchronousCommit').size() - 1",message="requiredSynchronizedSecondariesToCommit may be at most the number of SynchronousCommit replicas minus one"
type SQLServerAvailabilityGroupSpec struct {
	ServerSpec `json:",inline"`
	// AGName is the group's name in T-SQL; the CR's name with - replaced by _ when left out.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	AGName string `json:"agName,omitempty"`
	// +kubebuilder:default=EXTERNAL
	ClusterType ClusterType `json:"clusterType,omitempty"`
	// EndpointPort of the database mirroring endpoint.
	// +kubebuilder:default=5022
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	EndpointPort int32 `json:"endpointPort,omitempty"`
	// Replicas of the group; the first one is the first primary.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self[0].availabilityMode == 'SynchronousCommit'",message="the first replica must be SynchronousCommit: it is the first primary"
	// +kubebuilder:validation:XValidation:rule="self.filter(r, r.availabilityMode == 'ConfigurationOnly').size() <= 1",message="at most one ConfigurationOnly replica (Msg 47107)"
	// +kubebuilder:validation:XValidation:rule="self.filter(r, r.availabilityMode == 'ConfigurationOnly').size() == 0 || self.filter(r, r.availabilityMode == 'SynchronousCommit').size() <= 2",message="a ConfigurationOnly replica goes with at most two SynchronousCommit replicas (Msg 47108)"
	// +kubebuilder:validation:XValidation:rule="self.filter(r, r.availabilityMode == 'SynchronousCommit').size() <= 5",message="at most five SynchronousCommit replicas (FG 8)"
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.availabilityMode == 'SynchronousCommit' || r.failoverMode == 'Manual' || r.availabilityMode == 'ConfigurationOnly')",message="an AsynchronousCommit replica must have failoverMode Manual"
	Replicas []AGReplicaSpec `json:"replicas"`
	// Databases that shall be in the group: created when missing, backed up once, added and seeded.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(d, d.name.lowerAscii()).all(n, self.exists_one(d, d.name.lowerAscii() == n))",message="databases differ only in case: SQL Server takes them for one"
	Databases []DatabaseSpec `json:"databases,omitempty"`
	// +kubebuilder:default={}
	AutomaticFailover AutomaticFailoverSpec `json:"automaticFailover,omitempty"`
	// +kubebuilder:default=Preferred
	Durability Durability `json:"durability,omitempty"`
	// RequiredSynchronizedSecondariesToCommit fixes k and means durability Required with this number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RequiredSynchronizedSecondariesToCommit *int32 `json:"requiredSynchronizedSecondariesToCommit,omitempty"`
	// RelaxAfterSeconds before k is lowered under durability Preferred.
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=5
	RelaxAfterSeconds int32 `json:"relaxAfterSeconds,omitempty"`
	// AutomaticReseed lets the operator drop the copies of a replica that nothing else has brought back, and seed
	// them anew from the primary, while the primary's own copies are complete.
	// +optional
	AutomaticReseed bool `json:"automaticReseed,omitempty"`
	// PreferredPrimary is the replica (pod name) that shall be primary when all is well.
	// +optional
	PreferredPrimary string `json:"preferredPrimary,omitempty"`
	// MaxSwitchoverDelaySeconds is the deadline of a planned switchover.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=10
	MaxSwitchoverDelaySeconds int32 `json:"maxSwitchoverDelaySeconds,omitempty"`
	// +kubebuilder:default={}
	PreStopFailover PreStopFailoverSpec `json:"preStopFailover,omitempty"`
	// Listener is the read-write Service; <name>-rw when no name is given.
	// +kubebuilder:default={}
	Listener ServiceSpec `json:"listener,omitempty"`
	// ReadOnlyListener is the Service over readable secondaries; <name>-ro when no name is given.
	// +kubebuilder:default={}
	ReadOnlyListener ServiceSpec `json:"readOnlyListener,omitempty"`
}

// SQLServerAvailabilityGroup is an Always On availability group.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sqlag,categories=mssql
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.primaryReplica`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Safe",type=string,JSONPath=`.status.safeTargets`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 13",message="the name may have at most 13 characters: replicas are called <name>-<ordinal> and SQL Server takes at most 15"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must start with a letter and hold only a-z, 0-9 and -"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.listener.name) || !has(self.spec.readOnlyListener.name) || self.spec.listener.name != self.spec.readOnlyListener.name",message="listener and readOnlyListener must have different names"
// +kubebuilder:validation:XValidation:rule="(!has(self.spec.listener.name) || self.spec.listener.name != self.metadata.name) && (!has(self.spec.readOnlyListener.name) || self.spec.readOnlyListener.name != self.metadata.name)",message="a listener cannot have the group's own name: that is its headless Service"
type SQLServerAvailabilityGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SQLServerAvailabilityGroupSpec   `json:"spec"`
	Status SQLServerAvailabilityGroupStatus `json:"status,omitempty"`
}

// SQLServerAvailabilityGroupList is a list of availability groups.
// +kubebuilder:object:root=true
type SQLServerAvailabilityGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SQLServerAvailabilityGroup `json:"items"`
}
