package desired

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const groupYAML = `
metadata: {name: shop, namespace: sales, uid: 5f3c}
spec:
  image: mcr.microsoft.com/mssql/server:2022-latest
  edition: Developer
  acceptEula: "Y"
  port: 1433
  endpointPort: 5022
  saPasswordSecretRef: {name: shop-secret, key: SA_PASSWORD}
  replicas:
  - {availabilityMode: SynchronousCommit, failoverMode: Automatic}
  - {availabilityMode: SynchronousCommit, failoverMode: Automatic, readableSecondary: true}
  storage: {dataVolumeSize: 20Gi, reclaimPolicy: Retain}
  mssqlConf: {sqlagent.enabled: "true"}
  resources: {requests: {memory: 2Gi, cpu: 500m}, limits: {memory: 4Gi}}
  listener: {name: shop-listener, port: 11433, serviceType: LoadBalancer, annotations: {example.com/pool: internal}}
  readOnlyListener: {port: 1433}
  timezone: Europe/Berlin
  podLabels: {team: sales, app: not-mine}
  podAnnotations: {example.com/note: hello}
`

const instanceYAML = `
metadata: {name: mssql-standalone, namespace: default, uid: 77aa}
spec:
  image: mcr.microsoft.com/mssql/server:2022-latest
  edition: Developer
  acceptEula: "Y"
  storage: {dataVolumeSize: 10Gi, storageClassName: fast}
`

func group(t *testing.T) Server {
	t.Helper()
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	if err := yaml.UnmarshalStrict([]byte(groupYAML), g); err != nil {
		t.Fatal(err)
	}
	return ForGroup(g)
}

func instance(t *testing.T) Server {
	t.Helper()
	i := &v1alpha1.SQLServerInstance{}
	if err := yaml.UnmarshalStrict([]byte(instanceYAML), i); err != nil {
		t.Fatal(err)
	}
	return ForInstance(i)
}

func podOptions() PodOptions {
	return PodOptions{
		OperatorImage: "example.com/operator:1", OperatorPullPolicy: corev1.PullIfNotPresent,
		ConfigKey: "instance.json", ConfigDigest: "c0ffee",
	}
}

// objects are all of a resource, in the order in which the controller makes them.
func objects(s Server) []runtime.Object {
	out := []runtime.Object{
		s.ServiceAccount(), s.Role(), s.RoleBinding(), s.ConfigMap("instance.json", "{}\n"),
		s.OperatorSecret("generated"), s.SASecret("generated"), s.CASecret([]byte("cert"), []byte("key")),
	}
	for _, svc := range s.Services() {
		out = append(out, svc)
	}
	if pdb := s.PodDisruptionBudget(); pdb != nil {
		out = append(out, pdb)
	}
	last := s.Replicas[len(s.Replicas)-1]
	tls := ReplicaTLS{
		ServerCert: []byte("server cert"), ServerKey: []byte("server key"),
		ManagerCert: []byte("manager cert"), ManagerKey: []byte("manager key"), CA: []byte("ca"),
	}
	return append(out, s.ReplicaTLSSecret(last, tls), s.DataClaim(last), s.Pod(last, podOptions()))
}

func TestObjectsAreThoseOfTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Server{"group": group(t), "instance": instance(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			for _, o := range objects(s) {
				u, _, err := Applicable(o)
				if err != nil {
					t.Fatal(err)
				}
				text, err := yaml.Marshal(u.Object)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("---\n")
				b.Write(text)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("run go test -update and read the difference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesOfChildrenFitIntoSixtyThreeCharactersForTheLongestResourceName(t *testing.T) {
	t.Parallel()
	i := &v1alpha1.SQLServerInstance{}
	i.Name, i.Namespace = strings.Repeat("a", 50), "default"
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Name, g.Namespace = strings.Repeat("a", 13), "default"
	g.Spec.Replicas = make([]v1alpha1.AGReplicaSpec, 9)
	for _, s := range []Server{ForInstance(i), ForGroup(g)} {
		for _, o := range objects(s) {
			u, _, err := Applicable(o)
			if err != nil {
				t.Fatal(err)
			}
			if len(u.GetName()) > 63 {
				t.Errorf("%s %s has %d characters", u.GetKind(), u.GetName(), len(u.GetName()))
			}
			for k, v := range u.GetLabels() {
				if len(v) > 63 {
					t.Errorf("%s: label %s has %d characters", u.GetKind(), k, len(v))
				}
			}
		}
		for _, r := range s.Replicas {
			if n := v1alpha1.HostName(r); len(n) > v1alpha1.MaxHostName {
				t.Errorf("host name %s has %d characters", n, len(n))
			}
		}
	}
}

func TestHostNamesOfLongNamesThatShareTheirBeginningDiffer(t *testing.T) {
	t.Parallel()
	a, b := v1alpha1.HostName("mssql-standalone-0"), v1alpha1.HostName("mssql-standalones-0")
	if a == b {
		t.Errorf("both are %s", a)
	}
	if got := v1alpha1.HostName("mssql-ag-0"); got != "mssql-ag-0" {
		t.Errorf("a short name was changed to %s", got)
	}
}

func TestDigestChangesWithWhatNeedsARestartAndWithNothingElse(t *testing.T) {
	t.Parallel()
	base := group(t)
	of := func(change func(*v1alpha1.SQLServerAvailabilityGroup)) string {
		g := base.Group.DeepCopy()
		change(g)
		return ForGroup(g).Digest("shop-0", "c")
	}
	unchanged := of(func(*v1alpha1.SQLServerAvailabilityGroup) {})
	for name, change := range map[string]func(*v1alpha1.SQLServerAvailabilityGroup){
		"image":       func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.Image = "other" },
		"mssqlConf":   func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.MSSQLConf = map[string]string{"a.b": "c"} },
		"timezone":    func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.Timezone = "UTC" },
		"resources":   func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.Resources = corev1.ResourceRequirements{} },
		"sa Secret":   func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.SAPasswordSecretRef.Name = "x" },
		"environment": func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.AdditionalEnvVars = []corev1.EnvVar{{Name: "A"}} },
	} {
		if of(change) == unchanged {
			t.Errorf("%s: the digest stayed the same", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.SQLServerAvailabilityGroup){
		"one more replica": func(g *v1alpha1.SQLServerAvailabilityGroup) {
			g.Spec.Replicas = append(g.Spec.Replicas, v1alpha1.AGReplicaSpec{})
		},
		"volume size": func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.Storage = v1alpha1.StorageSpec{} },
		"listener":    func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.Listener.Port = 1 },
		"pod labels":  func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.PodLabels = nil },
		"pull policy": func(g *v1alpha1.SQLServerAvailabilityGroup) { g.Spec.ImagePullPolicy = corev1.PullAlways },
	} {
		if of(change) != unchanged {
			t.Errorf("%s: the digest changed", name)
		}
	}
}

func TestAUserCannotOverwriteTheLabelsThatSelectorsUse(t *testing.T) {
	t.Parallel()
	pod := group(t).Pod("shop-0", podOptions())
	if got := pod.Labels[v1alpha1.LabelApp]; got != "shop" {
		t.Errorf("label app is %q", got)
	}
	if got := pod.Labels["team"]; got != "sales" {
		t.Errorf("label team is %q", got)
	}
}

func TestPinningAddsTheNodeToEveryTermOfTheUsersAffinity(t *testing.T) {
	t.Parallel()
	s := group(t)
	s.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fast", Operator: corev1.NodeSelectorOpExists}}},
		}},
	}}
	o := podOptions()
	free := s.Pod("shop-0", o)
	o.Node = "node-b"
	pinned := s.Pod("shop-0", o)
	for _, term := range pinned.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if !slices.ContainsFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool { return slices.Contains(r.Values, "node-b") }) {
			t.Errorf("a term does not name the node: %v", term)
		}
	}
	if pinned.Annotations[v1alpha1.AnnotationDigest] != free.Annotations[v1alpha1.AnnotationDigest] {
		t.Error("pinning changed the digest")
	}
	if terms := s.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(terms[0].MatchFields) != 0 {
		t.Error("pinning changed the resource's own affinity")
	}
}

func TestTheServersMemoryLimitLeavesRoomForTheManager(t *testing.T) {
	t.Parallel()
	s := group(t)
	if got := s.MemoryLimitMB(); got != 3276 {
		t.Errorf("limit for 4Gi is %d MB, want 3276", got)
	}
	s.Spec.Resources.Limits = nil
	if got := s.MemoryLimitMB(); got != 0 {
		t.Errorf("limit without a limit is %d", got)
	}
}
