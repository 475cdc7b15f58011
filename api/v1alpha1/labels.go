package v1alpha1

// Labels on every object that belongs to an availability group or an instance.
const (
	LabelName      = "app.kubernetes.io/name"       // "mssql"
	LabelInstance  = "app.kubernetes.io/instance"   // the CR's name
	LabelComponent = "app.kubernetes.io/component"  // "availability-group" or "instance"
	LabelManagedBy = "app.kubernetes.io/managed-by" // "kubectl-mssql"
	LabelAG        = Group + "/ag"                  // the availability group's CR name
	LabelReplica   = Group + "/replica"             // the replica's (and pod's) name
	LabelRole      = Group + "/role"                // RolePrimary, RoleSecondary; absent while unknown
	LabelReadable  = Group + "/readable"            // "true" on a secondary that may serve reads now
	LabelApp       = "app"                          // the CR's name, for short selectors

	ManagedBy = "kubectl-mssql"
	AppName   = "mssql"

	ComponentAG       = "availability-group"
	ComponentInstance = "instance"

	RolePrimary   = "primary"
	RoleSecondary = "secondary"
)

// Annotations by which people and tools steer a resource. All of them may be
// set by hand or by GitOps; the plugin has no other way in.
const (
	// AnnotationRequest carries one Request document (JSON): an order to be carried out once.
	AnnotationRequest = Group + "/request"
	// AnnotationFenced lists fenced replicas: a JSON array of FencedReplica.
	AnnotationFenced = Group + "/fenced"
	// AnnotationPaused, when "true", stops reconciling; the servers keep running.
	AnnotationPaused = Group + "/paused"
	// AnnotationPauseNote holds who paused it, when and why, as JSON. It is for people.
	AnnotationPauseNote = Group + "/pause-note"
	// AnnotationDigest is the digest of the desired pod, on the pod.
	AnnotationDigest = Group + "/pod-digest"
	// AnnotationApplied is the digest of what the controller last applied, on its other children.
	AnnotationApplied = Group + "/applied"
	// AnnotationNudged is on the write Service: when the controller last made Kubernetes look at it again.
	AnnotationNudged = Group + "/nudged"
	// AnnotationRestart is on a pod: the id of the restart order that it was made for or after.
	AnnotationRestart = Group + "/restart"
	// AnnotationVolumeSize is on a pod: the size that its data volume's claim asked for when the
	// pod was made. A volume that had to be mounted anew to grow is so only once for each size.
	AnnotationVolumeSize = Group + "/volume-size"
	// AnnotationLastPod is on a data volume's claim: the newest pod that used it, and whether
	// its end is proven (safety.md R8). A JSON document.
	AnnotationLastPod = Group + "/last-pod"
	// AnnotationInstallID marks what `install` applied.
	AnnotationInstallID = Group + "/installed-by"
)

// Names inside the pod that the controller, the instance manager and the plugin must agree on.
const (
	ContainerName     = "mssql"
	InitContainerName = "controller"

	VolumeData       = "data"
	VolumeController = "controller"

	// PortTDS is the default TDS port.
	PortTDS = 1433
	// PortEndpoint is the default database mirroring endpoint port.
	PortEndpoint = 5022
	// PortProbes is the instance manager's plain HTTP port: /startup /live /ready /metrics.
	PortProbes = 8080
	// PortManager is the instance manager's mTLS port.
	PortManager = 8443
)

// LeaseName is the name of the Lease that holds the authority over the named AG.
func LeaseName(ag string) string { return ag + "-primary" }

// OperatorSecretName holds the password of the login kubectl_mssql (key "password").
func OperatorSecretName(name string) string { return name + "-operator" }

// CASecretName holds the certificate authority of one AG or instance (tls.crt, tls.key).
func CASecretName(name string) string { return name + "-ca" }

// DefaultSAPasswordSecretName holds a generated sa password when the spec names none (key "SA_PASSWORD").
func DefaultSAPasswordSecretName(name string) string { return name + "-sa" }

// ReplicaTLSSecretName holds one replica's TDS and instance-manager certificates.
func ReplicaTLSSecretName(replica string) string { return replica + "-tls" }

// ConfigMapName holds mssql.conf and the manager's settings.
func ConfigMapName(name string) string { return name + "-config" }

// ServiceAccountName is the account of the pods of an AG or instance.
func ServiceAccountName(name string) string { return name + "-mssql" }

// SAPasswordKey is the key of generated sa password Secrets; seed manifests use the same.
const SAPasswordKey = "SA_PASSWORD"
