package desired

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Names of ports, in containers and Services.
const (
	PortNameTDS      = "tds"
	PortNameEndpoint = "endpoint"
	PortNameProbes   = "probes"
	PortNameManager  = "manager"
)

// affinitySeconds is how long a client of the read-only Service stays on one replica.
const affinitySeconds = 300

// Services are all that the resource has.
func (s Server) Services() []*corev1.Service {
	out := []*corev1.Service{s.HeadlessService()}
	if s.Group != nil {
		return append(out, s.Listener(), s.ReadOnlyListener())
	}
	return append(out, s.ClientService())
}

// HeadlessService gives every pod its name, before it is ready too: the replicas
// must find each other while they start (FG 7.4).
func (s Server) HeadlessService() *corev1.Service {
	svc := s.service(s.Name)
	ports := []corev1.ServicePort{port(PortNameTDS, s.Port(), PortNameTDS)}
	if s.Group != nil {
		ports = append(ports, port(PortNameEndpoint, s.EndpointPort(), PortNameEndpoint))
	}
	ports = append(ports, port(PortNameManager, v1alpha1.PortManager, PortNameManager))
	svc.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone,
		PublishNotReadyAddresses: true, Selector: s.Selector(), Ports: ports,
	}
	return svc
}

// Listener is the read-write Service: it follows the label role=primary, and nothing else.
// A node that does not reach the API server makes its pods unready after a while, and the
// primary that writes on there must not lose its clients by it
// (docs/adr/0021-the-label-alone.md).
func (s Server) Listener() *corev1.Service {
	selector := s.Selector()
	selector[v1alpha1.LabelRole] = v1alpha1.RolePrimary
	svc := s.clientService(s.Group.ListenerName(), s.Group.Spec.Listener, selector)
	svc.Spec.PublishNotReadyAddresses = true
	return svc
}

// ReadOnlyListener serves the readable secondaries; a client stays on one of them.
func (s Server) ReadOnlyListener() *corev1.Service {
	selector := s.Selector()
	selector[v1alpha1.LabelRole] = v1alpha1.RoleSecondary
	selector[v1alpha1.LabelReadable] = "true"
	svc := s.clientService(s.Group.ReadOnlyListenerName(), s.Group.Spec.ReadOnlyListener, selector)
	svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
		ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(affinitySeconds))},
	}
	return svc
}

// ClientService is where clients of a standalone instance connect. There is no other server
// to which readiness could lead them.
func (s Server) ClientService() *corev1.Service {
	svc := s.clientService(s.Instance.ServiceName(), s.Instance.Spec.Service, s.Selector())
	svc.Spec.PublishNotReadyAddresses = true
	return svc
}

func (s Server) clientService(name string, spec v1alpha1.ServiceSpec, selector map[string]string) *corev1.Service {
	svc := s.service(name)
	svc.Annotations = mergeMaps(nil, spec.Annotations)
	p := spec.Port
	if p == 0 {
		p = v1alpha1.PortTDS
	}
	kind := spec.ServiceType
	if kind == "" {
		kind = corev1.ServiceTypeClusterIP
	}
	svc.Spec = corev1.ServiceSpec{
		Type: kind, Selector: selector, Ports: []corev1.ServicePort{port(PortNameTDS, p, PortNameTDS)},
	}
	return svc
}

func (s Server) service(name string) *corev1.Service {
	return &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: s.meta(name)}
}

func port(name string, number int32, target string) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromString(target), Protocol: corev1.ProtocolTCP}
}

// PodDisruptionBudget lets one replica go at a time. A group of one, and an
// instance, have none: a budget that never allows anything only blocks nodes. It
// says how many must stay, as a number: how many may go can only be reckoned for
// pods whose owner has a scale subresource.
func (s Server) PodDisruptionBudget() *policyv1.PodDisruptionBudget {
	if len(s.Replicas) < 2 {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: s.meta(s.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(len(s.Replicas) - 1)),
			Selector:     &metav1.LabelSelector{MatchLabels: s.Selector()},
			// A replica that does not work protects nothing: it must not keep a node from being drained.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// DNSNames under which a replica is reached, the Services that lead to it
// included: the subject alternative names of its certificate.
func (s Server) DNSNames(replica string) []string {
	host := v1alpha1.HostName(replica)
	names := []string{host}
	full := func(name string) {
		names = append(names, name,
			fmt.Sprintf("%s.%s", name, s.Namespace),
			fmt.Sprintf("%s.%s.svc", name, s.Namespace),
			fmt.Sprintf("%s.%s.svc.cluster.local", name, s.Namespace))
	}
	full(host + "." + s.Name)
	if host != replica {
		// A shortened host name: the pod's own name leads nowhere in DNS, but says which replica it is.
		full(replica + "." + s.Name)
	}
	for _, svc := range s.Services()[1:] {
		full(svc.Name)
	}
	return append(names, "localhost")
}

// HostName of a replica inside the cluster: what certificates are checked against.
func (s Server) HostName(replica string) string {
	return fmt.Sprintf("%s.%s.%s.svc", v1alpha1.HostName(replica), s.Name, s.Namespace)
}
