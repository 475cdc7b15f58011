package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster/csi"
)

// StorageClass is the default class that Up makes.
const StorageClass = "standard"

func clientFor(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Timeout = 30 * time.Second
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return client, nil
}

func (s *session) client() (*kubernetes.Clientset, error) { return clientFor(s.layout.kubeconfig()) }

// objects are what a cluster needs beside its processes.
type objects struct {
	driver     *storagev1.CSIDriver
	class      *storagev1.StorageClass
	dnsService *corev1.Service
	dnsSlice   *discoveryv1.EndpointSlice
}

func (p plan) objects() objects {
	attach, podInfo, grow := false, false, true
	fsGroup := storagev1.FileFSGroupPolicy
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer
	dnsPort := int32(p.ports.DNS)
	udp, tcp, nameUDP, nameTCP := corev1.ProtocolUDP, corev1.ProtocolTCP, "dns", "dns-tcp"
	return objects{
		driver: &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: csi.DriverName},
			Spec: storagev1.CSIDriverSpec{
				AttachRequired: &attach, PodInfoOnMount: &podInfo, FSGroupPolicy: &fsGroup,
				VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
			},
		},
		class: &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{
				Name:        StorageClass,
				Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
			},
			Provisioner: csi.DriverName, ReclaimPolicy: &reclaim, VolumeBindingMode: &binding, AllowVolumeExpansion: &grow,
		},
		dnsService: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns"}},
			Spec: corev1.ServiceSpec{
				ClusterIP: p.network.dnsServiceIP(),
				Ports: []corev1.ServicePort{
					{Name: nameUDP, Protocol: udp, Port: 53, TargetPort: intstr.FromInt32(dnsPort)},
					{Name: nameTCP, Protocol: tcp, Port: 53, TargetPort: intstr.FromInt32(dnsPort)},
				},
			},
		},
		// CoreDNS is a process of the machine, hence no selector.
		dnsSlice: &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: "kube-dns-machine",
				Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns", discoveryv1.LabelManagedBy: "kubectl-mssql-tests"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{p.network.gateway()}}},
			Ports: []discoveryv1.EndpointPort{
				{Name: &nameUDP, Protocol: &udp, Port: &dnsPort}, {Name: &nameTCP, Protocol: &tcp, Port: &dnsPort},
			},
		},
	}
}

// applyObjects creates what is missing. The objects depend on nothing that
// changes while a cluster lives, so that those that exist are right.
func (s *session) applyObjects(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	o, opts := s.plan.objects(), metav1.CreateOptions{}
	for _, create := range []func() error{
		func() error { _, err := client.StorageV1().CSIDrivers().Create(ctx, o.driver, opts); return err },
		func() error { _, err := client.StorageV1().StorageClasses().Create(ctx, o.class, opts); return err },
		func() error {
			// An address that is taken is found out before a name that is: the
			// Service of an earlier run would not show as one that exists.
			services := client.CoreV1().Services(o.dnsService.Namespace)
			_, err := services.Get(ctx, o.dnsService.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				_, err = services.Create(ctx, o.dnsService, opts)
			}
			return err
		},
		func() error {
			_, err := client.DiscoveryV1().EndpointSlices(o.dnsSlice.Namespace).Create(ctx, o.dnsSlice, opts)
			return err
		},
	} {
		// kube-system is made by the API server itself, a moment after it is ready.
		err := waitFor(ctx, 30*time.Second, "the cluster's own objects", nil, func(context.Context) error {
			if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readySince tells whether the node is Ready by a report not older than since:
// for a while after a power cut the API server shows the report before it.
func readySince(n *corev1.Node, since time.Time) (ready bool, why string) {
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status != corev1.ConditionTrue {
			return false, c.Message
		}
		// The API server keeps whole seconds.
		if c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
			return false, "it has not reported since its start"
		}
		return true, ""
	}
	return false, "it has not reported yet"
}

// waitNodesReady waits until the nodes are Ready and their kubelets know the CSI
// driver, and the default service account exists, without which no pod starts.
// A report from before since does not count.
func (s *session) waitNodesReady(ctx context.Context, since time.Time, names ...string) error {
	s.say("waiting for %d node(s) to be Ready", len(names))
	client, err := s.client()
	if err != nil {
		return err
	}
	for _, name := range names {
		gone := func() error {
			return errors.Join(s.gone("kubelet/"+name)(), s.gone("kube-proxy/"+name)(), s.gone("csi-driver/"+name)())
		}
		err := waitFor(ctx, 3*time.Minute, name, gone, func(ctx context.Context) error {
			n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if ready, why := readySince(n, since); !ready {
				return fmt.Errorf("%s is not Ready: %s", name, why)
			}
			drivers, err := client.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(drivers.Spec.Drivers) == 0 {
				return fmt.Errorf("the CSI driver is not registered on %s", name)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w\nthe end of its kubelet's log:\n%s", err, logTail(s.layout.log("kubelet/"+name)))
		}
	}
	return waitFor(ctx, time.Minute, "the default service account", nil, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func getOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}

func dial(ctx context.Context, network, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
