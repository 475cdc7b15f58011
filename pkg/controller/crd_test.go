package controller

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text, namespace string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if u.GetAPIVersion() == "" {
		u.SetAPIVersion("kubectl-mssql.io/v1alpha1")
	}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return u
}

func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	files, err := filepath.Glob("../../deploy/samples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		u := object(t, string(text), ns)
		if err := a.cli.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

const goodGroup = `
kind: SQLServerAvailabilityGroup
metadata: {name: shop}
spec:
  acceptEula: "Y"
  replicas: [{}, {}, {}]
`

const goodInstance = `
kind: SQLServerInstance
metadata: {name: shop}
spec: {acceptEula: "Y"}
`

func TestResourcesThatCannotWorkAreRefusedAtAdmissionWithACause(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	group := func(spec string) string {
		return "kind: SQLServerAvailabilityGroup\nmetadata: {name: shop}\nspec: {acceptEula: \"Y\", " + spec + "}\n"
	}
	three := "replicas: [{}, {}, {}]"
	for name, c := range map[string]struct{ text, want string }{
		"a good group":                        {goodGroup, ""},
		"a good instance":                     {goodInstance, ""},
		"a group's name of 13 characters":     {"kind: SQLServerAvailabilityGroup\nmetadata: {name: abcdefghijklm}\nspec: {acceptEula: \"Y\", replicas: [{}]}", ""},
		"a group's name of 14 characters":     {"kind: SQLServerAvailabilityGroup\nmetadata: {name: abcdefghijklmn}\nspec: {acceptEula: \"Y\", replicas: [{}]}", "at most 13 characters"},
		"a group's name that begins with 1":   {"kind: SQLServerAvailabilityGroup\nmetadata: {name: 1shop}\nspec: {acceptEula: \"Y\", replicas: [{}]}", "must start with a letter"},
		"a group's name with a dot":           {"kind: SQLServerAvailabilityGroup\nmetadata: {name: a.b}\nspec: {acceptEula: \"Y\", replicas: [{}]}", "must start with a letter"},
		"an instance's name of 16 characters": {"kind: SQLServerInstance\nmetadata: {name: mssql-standalone}\nspec: {acceptEula: \"Y\"}", ""},
		"an instance's name of 51 characters": {"kind: SQLServerInstance\nmetadata: {name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeef}\nspec: {acceptEula: \"Y\"}", "at most 50 characters"},
		"no licence":                          {"kind: SQLServerInstance\nmetadata: {name: a}\nspec: {acceptEula: \"N\"}", `Unsupported value: "N"`},
		"licence not mentioned":               {"kind: SQLServerInstance\nmetadata: {name: a}\nspec: {}", "acceptEula"},
		"no replicas":                         {group("replicas: []"), "should have at least 1 items"},
		"ten replicas":                        {group("replicas: [{},{},{},{},{},{},{},{},{},{}]"), "must have at most 9 items"},
		"first replica asynchronous":          {group("replicas: [{availabilityMode: AsynchronousCommit, failoverMode: Manual}, {}]"), "the first replica must be SynchronousCommit"},
		"asynchronous and automatic":          {group("replicas: [{}, {availabilityMode: AsynchronousCommit}]"), "must have failoverMode Manual"},
		"two witnesses":                       {group("replicas: [{}, {availabilityMode: ConfigurationOnly}, {availabilityMode: ConfigurationOnly}]"), "Msg 47107"},
		"a witness beside three":              {group("replicas: [{}, {}, {}, {availabilityMode: ConfigurationOnly}]"), "Msg 47108"},
		"a witness beside two":                {group("replicas: [{}, {}, {availabilityMode: ConfigurationOnly}]"), ""},
		"six synchronous":                     {group("replicas: [{},{},{},{},{},{}]"), "at most five SynchronousCommit"},
		"agName that is no identifier":        {group(three + ", agName: 'my ag]'"), "agName"},
		"both ports equal":                    {group(three + ", port: 5022"), "port and endpointPort must differ"},
		"port 0":                              {group(three + ", port: 70000"), "port"},
		"listener port too high":              {group(three + ", listener: {port: 70000}"), "listener.port"},
		"k as large as the group":             {group(three + ", requiredSynchronizedSecondariesToCommit: 3"), "minus one"},
		"k allowed":                           {group(three + ", requiredSynchronizedSecondariesToCommit: 2"), ""},
		"threshold below ten":                 {group(three + ", automaticFailover: {failoverThresholdSeconds: 9}"), "should be greater than or equal to 10"},
		"diagnostics timeout below ten":       {group(three + ", automaticFailover: {healthCheckTimeoutSeconds: 5}"), "should be greater than or equal to 10"},
		"healthThreshold unknown":             {group(three + ", automaticFailover: {healthThreshold: io}"), "healthThreshold"},
		"lease shorter than renewals":         {group(three + ", automaticFailover: {timing: {leaseSeconds: 5, renewSeconds: 2}}"), "leaseSeconds must be at least three times"},
		"authority shorter than renewals":     {group(three + ", automaticFailover: {timing: {authoritySeconds: 3, renewSeconds: 2}}"), "authoritySeconds must be at least twice"},
		"a system database":                   {group(three + ", databases: [{name: Master}]"), "system databases cannot be"},
		"one database twice":                  {group(three + ", databases: [{name: a}, {name: a}]"), "Duplicate value"},
		"one database twice in another case":  {group(three + ", databases: [{name: Orders}, {name: orders}]"), "differ only in case"},
		"volume too small":                    {group(three + ", storage: {dataVolumeSize: 500Mi}"), "at least 1Gi"},
		"shared volume":                       {group(three + ", storage: {accessModes: [ReadWriteMany]}"), "Unsupported value"},
		"two access modes":                    {group(three + ", storage: {accessModes: [ReadWriteOnce, ReadWriteOncePod]}"), "must have at most 1 item"},
		"Secret without a key":                {group(three + ", saPasswordSecretRef: {name: x, key: ''}"), "needs both name and key"},
		"Secret without a name":               {group(three + ", saPasswordSecretRef: {key: x}"), "needs both name and key"},
		"memory limit too low":                {group(three + ", resources: {limits: {memory: 1Gi}}"), "at least 2000Mi"},
		"memory limit just enough":            {group(three + ", resources: {limits: {memory: 2000Mi}}"), ""},
		"memory limit as a number":            {group(three + ", resources: {limits: {memory: 1000}}"), "at least 2000Mi"},
		"operator's mssqlConf key":            {group(three + ", mssqlConf: {hadr.hadrenabled: '0'}"), "the operator owns them"},
		"mssqlConf key without a section":     {group(three + ", mssqlConf: {tcpport: '1'}"), "section.key"},
		"operator's environment variable":     {group(three + ", additionalEnvVars: [{name: MSSQL_SA_PASSWORD, value: x}]"), "the operator owns them"},
		"edition unknown":                     {group(three + ", edition: Datacenter"), "edition"},
		"both listeners of one name":          {group(three + ", listener: {name: x}, readOnlyListener: {name: x}"), "different names"},
		"listener of the group's own name":    {group(three + ", listener: {name: shop}"), "headless Service"},
		"unknown clusterType":                 {group(three + ", clusterType: WSFC"), "clusterType"},
		"unknown service type":                {group(three + ", listener: {serviceType: ExternalName}"), "serviceType"},
	} {
		err := a.cli.Create(t.Context(), object(t, c.text, ns), client.DryRunAll, client.FieldValidation("Strict"))
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != "" && !contains(err, c.want) {
			t.Errorf("%s: %v\nwant %q", name, err, c.want)
		}
	}
}

func TestWhatCannotBeChangedLaterIsRefusedAtAdmission(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	g := object(t, `
kind: SQLServerAvailabilityGroup
metadata: {name: shop}
spec:
  acceptEula: "Y"
  agName: ag1
  replicas: [{}, {}]
  storage: {dataVolumeSize: 10Gi, storageClassName: fast}
`, ns)
	i := object(t, goodInstance, ns)
	for _, o := range []*unstructured.Unstructured{g, i} {
		if err := a.cli.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		obj         *unstructured.Unstructured
		patch, want string
	}{
		"rename the group":             {g, `{"spec":{"agName":"other"}}`, "agName is immutable"},
		"forget the group's name":      {g, `{"spec":{"agName":null}}`, "agName is immutable"},
		"another cluster type":         {g, `{"spec":{"clusterType":"NONE"}}`, "clusterType is immutable"},
		"another edition":              {g, `{"spec":{"edition":"Express"}}`, "edition is immutable"},
		"another port":                 {g, `{"spec":{"port":1500}}`, "immutable"},
		"another endpoint port":        {g, `{"spec":{"endpointPort":5023}}`, "immutable"},
		"fewer replicas":               {g, `{"spec":{"replicas":[{}]}}`, "replicas cannot be removed"},
		"more replicas":                {g, `{"spec":{"replicas":[{},{},{}]}}`, ""},
		"a smaller volume":             {g, `{"spec":{"storage":{"dataVolumeSize":"9Gi"}}}`, "cannot shrink"},
		"a larger volume":              {g, `{"spec":{"storage":{"dataVolumeSize":"11Gi"}}}`, ""},
		"the same size in other words": {g, `{"spec":{"storage":{"dataVolumeSize":"10240Mi"}}}`, ""},
		"another storage class":        {g, `{"spec":{"storage":{"storageClassName":"slow"}}}`, "storageClassName is immutable"},
		"no storage class":             {g, `{"spec":{"storage":{"storageClassName":null}}}`, "storageClassName is immutable"},
		"another access mode":          {g, `{"spec":{"storage":{"accessModes":["ReadWriteOncePod"]}}}`, "accessModes is immutable"},
		"other timing":                 {g, `{"spec":{"automaticFailover":{"timing":{"profile":"Fast"}}}}`, "timing is immutable"},
		"another threshold":            {g, `{"spec":{"automaticFailover":{"failoverThresholdSeconds":60}}}`, ""},
		"an instance's edition":        {i, `{"spec":{"edition":"Express"}}`, "edition is immutable"},
		"an instance's port":           {i, `{"spec":{"port":1500}}`, "port is immutable"},
		"an instance's class":          {i, `{"spec":{"storage":{"storageClassName":"x"}}}`, "storageClassName is immutable"},
		"an instance's smaller volume": {i, `{"spec":{"storage":{"dataVolumeSize":"9Gi"}}}`, "cannot shrink"},
	} {
		err := a.cli.Patch(t.Context(), c.obj.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != "" && !contains(err, c.want) {
			t.Errorf("%s: %v\nwant %q", name, err, c.want)
		}
	}
}
