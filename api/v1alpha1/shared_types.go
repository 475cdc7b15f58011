package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Edition of SQL Server: the value of MSSQL_PID (FG 7.2).
// +kubebuilder:validation:Enum=Developer;Express;Standard;Enterprise;EnterpriseCore;Evaluation;Web;StandardDeveloper
type Edition string

// StorageSpec describes the data volume of a server.
// +kubebuilder:validation:XValidation:rule="!has(self.dataVolumeSize) || !has(oldSelf.dataVolumeSize) || quantity(string(self.dataVolumeSize)).compareTo(quantity(string(oldSelf.dataVolumeSize))) >= 0",message="dataVolumeSize cannot shrink: Kubernetes cannot make a volume smaller"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storageClassName is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.accessModes) == has(oldSelf.accessModes) && (!has(self.accessModes) || self.accessModes == oldSelf.accessModes)",message="accessModes is immutable"
type StorageSpec struct {
	// DataVolumeSize is the size of the data volume; it may grow, never shrink.
	// +kubebuilder:default="10Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="dataVolumeSize must be at least 1Gi"
	DataVolumeSize resource.Quantity `json:"dataVolumeSize,omitempty"`
	// StorageClassName selects the StorageClass; the cluster's default when empty. Immutable.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// AccessModes of the volume claim. Immutable. ReadWriteMany is refused: one volume belongs to one server.
	// +optional
	// +kubebuilder:default={"ReadWriteOnce"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:Enum=ReadWriteOnce;ReadWriteOncePod
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// ReclaimPolicy is patched onto the bound volume: Retain keeps the data when the claim is deleted.
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Delete
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// ServerSpec is what a standalone instance and a replica of an AG have in common.
type ServerSpec struct {
	// Image of SQL Server, unchanged from Microsoft.
	// +kubebuilder:default="mcr.microsoft.com/mssql/server:2025-latest"
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the SQL Server container.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets for the SQL Server image and the operator's.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// Edition (MSSQL_PID). Immutable.
	// +kubebuilder:default=Developer
	Edition Edition `json:"edition,omitempty"`
	// AcceptEula must be "Y": you accept Microsoft's licence terms for SQL Server.
	// +kubebuilder:validation:Enum=Y
	AcceptEula string `json:"acceptEula"`
	// SAPasswordSecretRef names the Secret and key with the password of sa.
	// When it is left out, a Secret <name>-sa with a random password is made.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0 && size(self.key) > 0",message="saPasswordSecretRef needs both name and key"
	SAPasswordSecretRef *corev1.SecretKeySelector `json:"saPasswordSecretRef,omitempty"`
	// Port of the TDS listener.
	// +kubebuilder:default=1433
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Storage of the data volume.
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitempty"`
	// MSSQLConf are settings of mssql.conf as "section.key": "value" (FG 7.3).
	// Keys that the operator owns are refused.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z]+[.][A-Za-z0-9]+$'))",message="mssqlConf keys have the form section.key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['hadr.hadrenabled','network.tcpport','network.tlscert','network.tlskey','EULA.accepteula','eula.accepteula']))",message="mssqlConf must not set hadr.hadrenabled, network.tcpport, network.tlscert, network.tlskey or eula.accepteula: the operator owns them"
	MSSQLConf map[string]string `json:"mssqlConf,omitempty"`
	// Resources of the SQL Server container. A memory limit below 2000Mi is refused: SQL Server does not start with less (FG 7.1).
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('2000Mi')) >= 0",message="resources.limits.memory must be at least 2000Mi: SQL Server does not start with less"
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Timezone of the server process (TZ).
	// +optional
	Timezone string `json:"timezone,omitempty"`
	// AdditionalEnvVars of the SQL Server container. Variables that the operator owns are refused.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(e.name in ['ACCEPT_EULA','MSSQL_SA_PASSWORD','SA_PASSWORD','MSSQL_PID','MSSQL_TCP_PORT','MSSQL_ENABLE_HADR']))",message="additionalEnvVars must not set ACCEPT_EULA, MSSQL_SA_PASSWORD, SA_PASSWORD, MSSQL_PID, MSSQL_TCP_PORT or MSSQL_ENABLE_HADR: the operator owns them"
	AdditionalEnvVars []corev1.EnvVar `json:"additionalEnvVars,omitempty"`
	// NodeSelector of the pods; kubernetes.io/arch=amd64 is added unless another value is given.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Affinity of the pods. Replicas of an AG prefer different nodes unless it is set.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints of the pods.
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PriorityClassName of the pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// PodLabels and PodAnnotations are added to the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// TerminationGracePeriodSeconds is how long a clean stop of SQL Server may take.
	// The pod's grace period is this plus the hand-over time of preStopFailover.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=10
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// ServiceSpec describes one Service for clients.
type ServiceSpec struct {
	// Name of the Service.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// Port that clients connect to.
	// +kubebuilder:default=1433
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// ServiceType of the Service.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// Annotations of the Service, for example for a cloud's load balancer.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
