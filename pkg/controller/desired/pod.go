package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// UserID is the user and the group of Microsoft's image (FG 7.1).
const UserID int64 = 10001

// Paths inside the pod that the instance manager expects.
const (
	DirData       = "/var/opt/mssql"
	DirController = "/controller"
	DirConfig     = "/etc/kubectl-mssql/config"
	DirSA         = "/etc/kubectl-mssql/sa"
	DirOperator   = "/etc/kubectl-mssql/operator"
	DirTLS        = "/etc/kubectl-mssql/tls"
	DirToken      = "/var/run/secrets/kubernetes.io/serviceaccount"

	program = DirController + "/kubectl-mssql"
)

// Names of volumes beside v1alpha1.VolumeData and v1alpha1.VolumeController.
const (
	volumeConfig   = "config"
	volumeSA       = "sa-password"
	volumeOperator = "operator-password"
	volumeTLS      = "tls"
	volumeTmp      = "tmp"
	volumeToken    = "token"
)

// PodOptions are what a pod depends on beside its resource.
type PodOptions struct {
	// OperatorImage is the image of this program, for the init container.
	OperatorImage      string
	OperatorPullPolicy corev1.PullPolicy
	// ConfigKey is the instance manager's file in the ConfigMap; ConfigDigest changes
	// with those of its settings that are not in the spec and need a restart.
	ConfigKey, ConfigDigest string
	// Restart is the id of the newest restart order; it is no part of the digest.
	Restart string
	// Node pins the pod to a node; empty leaves the choice to the scheduler. It is no
	// part of the digest.
	Node string
}

// Pod of one replica. Its annotation v1alpha1.AnnotationDigest names what it was
// made from, so that a pod whose resource changed since can be told.
func (s Server) Pod(replica string, o PodOptions) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: replica, Namespace: s.Namespace,
			Labels:          mergeMaps(s.Spec.PodLabels, s.ReplicaLabels(replica)),
			Annotations:     s.podAnnotations(),
			OwnerReferences: []metav1.OwnerReference{s.Owner()},
		},
		Spec: corev1.PodSpec{
			Hostname: v1alpha1.HostName(replica), Subdomain: s.Name,
			ServiceAccountName:           v1alpha1.ServiceAccountName(s.Name),
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			// Graceful end: the hand-over, then a clean stop of the server, then a little for the rest.
			TerminationGracePeriodSeconds: ptr.To(s.GracePeriodSeconds()),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: ptr.To(UserID), RunAsNonRoot: ptr.To(true), FSGroup: ptr.To(UserID),
				FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ImagePullSecrets:          s.Spec.ImagePullSecrets,
			NodeSelector:              mergeMaps(map[string]string{corev1.LabelArchStable: "amd64"}, s.Spec.NodeSelector),
			Tolerations:               s.Spec.Tolerations,
			Affinity:                  s.affinity(),
			TopologySpreadConstraints: s.Spec.TopologySpreadConstraints,
			PriorityClassName:         s.Spec.PriorityClassName,
			RestartPolicy:             corev1.RestartPolicyAlways,
			InitContainers:            []corev1.Container{initContainer(o)},
			Containers:                []corev1.Container{s.container()},
			Volumes:                   s.volumes(replica, o),
		},
	}
	pod.Annotations[v1alpha1.AnnotationDigest] = s.Digest(replica, o.ConfigDigest)
	if o.Restart != "" {
		pod.Annotations[v1alpha1.AnnotationRestart] = o.Restart
	}
	if o.Node != "" {
		pin(&pod.Spec, o.Node)
	}
	return pod
}

// GracePeriodSeconds is how long a pod may take to end: the hand-over of the primary
// role, the clean stop of the server, and what process 1 itself needs.
func (s Server) GracePeriodSeconds() int64 {
	const own = 10
	stop := s.Spec.TerminationGracePeriodSeconds
	if stop == 0 {
		stop = 60
	}
	if s.Group == nil {
		return stop + own
	}
	p := s.Group.Spec.PreStopFailover
	if p.Enabled != nil && !*p.Enabled {
		return stop + own
	}
	seconds := int64(p.TimeoutSeconds)
	if seconds == 0 {
		seconds = 30
	}
	return stop + seconds + own
}

func (s Server) podAnnotations() map[string]string {
	// Mirroring traffic and TDS are their own TLS: a mesh's proxy breaks both (server-first protocols).
	base := map[string]string{
		"sidecar.istio.io/inject":                 "false",
		"linkerd.io/inject":                       "disabled",
		"kubectl.kubernetes.io/default-container": v1alpha1.ContainerName,
	}
	return mergeMaps(base, s.Spec.PodAnnotations)
}

// affinity keeps replicas of one group on different nodes where there are enough, unless the user says otherwise.
func (s Server) affinity() *corev1.Affinity {
	if s.Spec.Affinity != nil || s.Group == nil {
		return s.Spec.Affinity
	}
	apart := func(weight int32, topology string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: s.Selector()}, TopologyKey: topology,
		}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			apart(100, corev1.LabelHostname), apart(50, corev1.LabelTopologyZone),
		},
	}}
}

// pin adds the node to what the affinity already demands.
func pin(spec *corev1.PodSpec, node string) {
	onNode := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	a := spec.Affinity.DeepCopy()
	if a == nil {
		a = &corev1.Affinity{}
	}
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	for i := range required.NodeSelectorTerms {
		t := &required.NodeSelectorTerms[i]
		t.MatchFields = append(t.MatchFields, onNode)
	}
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	spec.Affinity = a
}

func initContainer(o PodOptions) corev1.Container {
	return corev1.Container{
		Name: v1alpha1.InitContainerName, Image: o.OperatorImage, ImagePullPolicy: o.OperatorPullPolicy,
		// The image's entry point is the program itself.
		Args:         []string{"instance", "install", program},
		VolumeMounts: []corev1.VolumeMount{{Name: v1alpha1.VolumeController, MountPath: DirController}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func (s Server) container() corev1.Container {
	ports := []corev1.ContainerPort{containerPort(PortNameTDS, s.Port())}
	if s.Group != nil {
		ports = append(ports, containerPort(PortNameEndpoint, s.EndpointPort()))
	}
	ports = append(ports, containerPort(PortNameProbes, v1alpha1.PortProbes), containerPort(PortNameManager, v1alpha1.PortManager))
	return corev1.Container{
		Name: v1alpha1.ContainerName, Image: s.Spec.Image, ImagePullPolicy: s.Spec.ImagePullPolicy,
		Command:      []string{program},
		Args:         []string{"instance", "run", "--config", DirConfig + "/instance.json"},
		Env:          s.env(),
		Ports:        ports,
		Resources:    s.Spec.Resources,
		VolumeMounts: mounts(),
		// A first start creates the system databases and may upgrade them: 10 minutes.
		StartupProbe:  probe("/startup", 5, 5, 120),
		LivenessProbe: probe("/live", 10, 5, 6),
		// Readiness asks the server itself; three misses are 15 s.
		ReadinessProbe: probe("/ready", 5, 6, 3),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			// Microsoft's program carries the file capability, and cannot be executed
			// where the bounding set lacks it.
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// env is the downward API and the user's own variables. No secret is ever in it.
func (s Server) env() []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		field("POD_NAME", "metadata.name"),
		field("POD_NAMESPACE", "metadata.namespace"),
		field("POD_UID", "metadata.uid"),
		field("POD_IP", "status.podIP"),
		field("NODE_NAME", "spec.nodeName"),
	}
	if s.Spec.Timezone != "" {
		env = append(env, corev1.EnvVar{Name: "TZ", Value: s.Spec.Timezone})
	}
	return append(env, s.Spec.AdditionalEnvVars...)
}

func mounts() []corev1.VolumeMount {
	ro := func(name, path string) corev1.VolumeMount {
		return corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true}
	}
	return []corev1.VolumeMount{
		{Name: v1alpha1.VolumeData, MountPath: DirData},
		ro(v1alpha1.VolumeController, DirController),
		ro(volumeConfig, DirConfig),
		ro(volumeSA, DirSA),
		ro(volumeOperator, DirOperator),
		ro(volumeTLS, DirTLS),
		ro(volumeToken, DirToken),
		{Name: volumeTmp, MountPath: "/tmp"},
	}
}

func (s Server) volumes(replica string, o PodOptions) []corev1.Volume {
	saName, saKey := s.Spec.SAPasswordSecret(s.Name)
	// Readable by the group alone: the pod's fsGroup.
	const mode int32 = 0o440
	secret := func(volume, name string, items ...corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: name, Items: items, DefaultMode: ptr.To(mode)}}}
	}
	empty := func(volume string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	return []corev1.Volume{
		{Name: v1alpha1.VolumeData, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: DataClaimName(replica)}}},
		empty(v1alpha1.VolumeController),
		{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ConfigMapName(s.Name)},
			Items:                []corev1.KeyToPath{{Key: o.ConfigKey, Path: "instance.json"}},
			DefaultMode:          ptr.To(mode),
		}}},
		secret(volumeSA, saName, corev1.KeyToPath{Key: saKey, Path: KeyPassword}),
		secret(volumeOperator, v1alpha1.OperatorSecretName(s.Name), corev1.KeyToPath{Key: KeyPassword, Path: KeyPassword}),
		secret(volumeTLS, v1alpha1.ReplicaTLSSecretName(replica)),
		tokenVolume(mode),
		empty(volumeTmp),
	}
}

// tokenVolume is what the API server would mount itself, readable by the pod's
// group: written out, so that what the pod may use is to be seen here.
func tokenVolume(mode int32) corev1.Volume {
	return corev1.Volume{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(mode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(3607))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		},
	}}}
}

func containerPort(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

func probe(path string, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(PortNameProbes), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: period, TimeoutSeconds: timeout, FailureThreshold: failures, SuccessThreshold: 1,
	}
}

// inputs are the settings that only a new pod takes up. The digest is made from
// them and not from the pod: a newer operator that builds the same pod in another
// way must not restart a database. Fields are only ever added with omitempty.
type inputs struct {
	Image           string                            `json:"image"`
	Edition         v1alpha1.Edition                  `json:"edition"`
	SASecret        string                            `json:"saSecret"`
	SAKey           string                            `json:"saKey"`
	Port            int32                             `json:"port"`
	EndpointPort    int32                             `json:"endpointPort,omitempty"`
	MSSQLConf       map[string]string                 `json:"mssqlConf,omitempty"`
	Resources       corev1.ResourceRequirements       `json:"resources"`
	Timezone        string                            `json:"timezone,omitempty"`
	Env             []corev1.EnvVar                   `json:"env,omitempty"`
	NodeSelector    map[string]string                 `json:"nodeSelector,omitempty"`
	Tolerations     []corev1.Toleration               `json:"tolerations,omitempty"`
	Affinity        *corev1.Affinity                  `json:"affinity,omitempty"`
	Spread          []corev1.TopologySpreadConstraint `json:"spread,omitempty"`
	PriorityClass   string                            `json:"priorityClass,omitempty"`
	GracePeriod     int64                             `json:"gracePeriod"`
	Config          string                            `json:"config,omitempty"`
	DataClaimVolume string                            `json:"dataClaim"`
}

// Digest names what a pod of this replica is made from. Labels, annotations, pull
// policy, pull secrets and the operator's own image are no part of it.
func (s Server) Digest(replica, configDigest string) string {
	in := inputs{
		Image: s.Spec.Image, Edition: s.Spec.Edition, Port: s.Port(), MSSQLConf: s.Spec.MSSQLConf,
		Resources: s.Spec.Resources, Timezone: s.Spec.Timezone, Env: s.Spec.AdditionalEnvVars,
		NodeSelector: s.Spec.NodeSelector, Tolerations: s.Spec.Tolerations, Affinity: s.Spec.Affinity,
		Spread: s.Spec.TopologySpreadConstraints, PriorityClass: s.Spec.PriorityClassName,
		GracePeriod: s.GracePeriodSeconds(), Config: configDigest, DataClaimVolume: DataClaimName(replica),
	}
	in.SASecret, in.SAKey = s.Spec.SAPasswordSecret(s.Name)
	if s.Group != nil {
		in.EndpointPort = s.EndpointPort()
	}
	return DigestOf(in)
}

// DigestOf is a short name for a value: equal values have equal digests.
func DigestOf(v any) string {
	// Encoding a map sorts its keys; what is passed here are plain API structs, which always encode.
	b, err := json.Marshal(v)
	if err != nil {
		b = fmt.Appendf(nil, "%#v", v)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
