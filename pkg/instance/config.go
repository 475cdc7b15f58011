package instance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ConfigKey is the key of the ConfigMap v1alpha1.ConfigMapName(name), and the file's name in the pod.
const ConfigKey = "instance.json"

// Kinds of Config.
const (
	KindAvailabilityGroup = "SQLServerAvailabilityGroup"
	KindInstance          = "SQLServerInstance"
)

// Config is the file instance.json: everything that the manager must know about
// its resource. It is the same for all replicas of a group, so that what is special
// about one pod comes from its environment (see Identity). The controller writes
// it; a change takes effect when the container restarts.
type Config struct {
	// Kind, Namespace, Name and UID of the custom resource.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Group is the availability group's T-SQL name; empty for a standalone instance.
	Group string `json:"group,omitempty"`
	// External: CLUSTER_TYPE = EXTERNAL. Only then are there leases to hold.
	External bool `json:"external,omitempty"`
	// Lease is the name of the authority's Lease; empty when there is none.
	Lease string `json:"lease,omitempty"`
	// Replicas of the group by ordinal.
	Replicas []ReplicaConfig `json:"replicas,omitempty"`

	Port         int32 `json:"port"`
	EndpointPort int32 `json:"endpointPort,omitempty"`

	// Edition is the value of MSSQL_PID.
	Edition string `json:"edition"`
	// AcceptEULA must be true: the user accepted Microsoft's licence terms in the resource.
	AcceptEULA bool `json:"acceptEULA"`
	// MemoryLimitMB is memory.memorylimitmb; 0 leaves SQL Server's own default.
	MemoryLimitMB int64 `json:"memoryLimitMB,omitempty"`
	// MSSQLConf are the user's settings, "section.key": "value".
	MSSQLConf map[string]string `json:"mssqlConf,omitempty"`

	Timing  TimingConfig  `json:"timing"`
	Health  HealthConfig  `json:"health"`
	PreStop PreStopConfig `json:"preStop"`
	Commit  CommitConfig  `json:"commit"`
	// StopTimeout is how long a clean stop of sqlservr may take before it is killed.
	StopTimeout metav1.Duration `json:"stopTimeout"`
}

// ReplicaConfig is one replica.
type ReplicaConfig struct {
	Name string  `json:"name"`
	Mode ag.Mode `json:"mode"`
}

// TimingConfig are the numbers of the write lease (safety.md §2).
type TimingConfig struct {
	Renew metav1.Duration `json:"renew"`
	Call  metav1.Duration `json:"call"`
	A     metav1.Duration `json:"authority"`
	Q     metav1.Duration `json:"statement"`
	L     metav1.Duration `json:"lease"`
	M     metav1.Duration `json:"margin"`
}

// HealthConfig says when a server is beyond saving (FG 6).
type HealthConfig struct {
	// Threshold is system, resource or query_processing.
	Threshold string `json:"threshold"`
	// Interval between two diagnostics, Timeout of one: at least 10 s, because it takes 5 s on a healthy server.
	Interval metav1.Duration `json:"interval"`
	Timeout  metav1.Duration `json:"timeout"`
	// Failures in a row after which a PRIMARY is killed; 0 never kills.
	Failures int32 `json:"failures"`
}

// PreStopConfig is the hand-over when a primary's pod is told to stop.
type PreStopConfig struct {
	Enabled bool            `json:"enabled"`
	Timeout metav1.Duration `json:"timeout"`
}

// CommitConfig is the policy of the commit rule (safety.md §4).
type CommitConfig struct {
	// Required never lowers k; K is the explicit value, or −1.
	Required   bool            `json:"required,omitempty"`
	K          int32           `json:"k"`
	RelaxAfter metav1.Duration `json:"relaxAfter"`
}

// NewTiming converts the effective timing of the resource.
func NewTiming(t v1alpha1.Timing) TimingConfig {
	d := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return TimingConfig{Renew: d(t.Renew), Call: d(t.Call), A: d(t.A), Q: d(t.Q), L: d(t.L), M: d(t.M)}
}

// AG is the timing in the vocabulary of the pure packages.
func (t TimingConfig) AG() ag.Timing {
	return ag.Timing{
		Renew: t.Renew.Duration, Call: t.Call.Duration,
		A: t.A.Duration, Q: t.Q.Duration, L: t.L.Duration, M: t.M.Duration,
	}
}

// ConfigForGroup is the file for the replicas of a group. memoryLimitMB comes from the pod's limit.
func ConfigForGroup(g *v1alpha1.SQLServerAvailabilityGroup, memoryLimitMB int64) Config {
	c := configForServer(&g.Spec.ServerSpec, memoryLimitMB)
	c.Kind, c.Namespace, c.Name, c.UID = KindAvailabilityGroup, g.Namespace, g.Name, string(g.UID)
	c.Group = g.TSQLName()
	c.External = g.Spec.ClusterType != v1alpha1.ClusterTypeNone
	if c.External {
		c.Lease = v1alpha1.LeaseName(g.Name)
	}
	c.EndpointPort = g.Spec.EndpointPort
	for i, r := range g.Spec.Replicas {
		c.Replicas = append(c.Replicas, ReplicaConfig{Name: g.ReplicaName(i), Mode: modeOf(r.AvailabilityMode)})
	}
	f := g.Spec.AutomaticFailover
	c.Timing = NewTiming(f.Timing.Effective())
	c.Health = HealthConfig{
		Threshold: f.HealthThreshold,
		Interval:  seconds(f.HealthCheckIntervalSeconds),
		Timeout:   seconds(f.HealthCheckTimeoutSeconds),
		Failures:  f.HealthCheckFailures,
	}
	p := g.Spec.PreStopFailover
	c.PreStop = PreStopConfig{Enabled: p.Enabled == nil || *p.Enabled, Timeout: seconds(p.TimeoutSeconds)}
	c.Commit = CommitConfig{
		Required:   g.Spec.Durability == v1alpha1.DurabilityRequired,
		K:          -1,
		RelaxAfter: seconds(g.Spec.RelaxAfterSeconds),
	}
	if k := g.Spec.RequiredSynchronizedSecondariesToCommit; k != nil {
		c.Commit.K, c.Commit.Required = *k, true
	}
	c.fill()
	return c
}

// ConfigForInstance is the file for a standalone instance.
func ConfigForInstance(i *v1alpha1.SQLServerInstance, memoryLimitMB int64) Config {
	c := configForServer(&i.Spec.ServerSpec, memoryLimitMB)
	c.Kind, c.Namespace, c.Name, c.UID = KindInstance, i.Namespace, i.Name, string(i.UID)
	c.Commit.K = -1
	c.fill()
	return c
}

func configForServer(s *v1alpha1.ServerSpec, memoryLimitMB int64) Config {
	return Config{
		Port:          s.Port,
		Edition:       string(s.Edition),
		AcceptEULA:    s.AcceptEula == "Y",
		MemoryLimitMB: memoryLimitMB,
		MSSQLConf:     s.MSSQLConf,
		StopTimeout:   metav1.Duration{Duration: time.Duration(s.TerminationGracePeriodSeconds) * time.Second},
	}
}

func seconds(n int32) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func modeOf(m v1alpha1.AvailabilityMode) ag.Mode {
	switch m {
	case v1alpha1.AsynchronousCommit:
		return ag.ModeAsynchronous
	case v1alpha1.ConfigurationOnly:
		return ag.ModeConfigurationOnly
	case v1alpha1.SynchronousCommit, "":
		return ag.ModeSynchronous
	}
	return ag.ModeUnknown
}

// Encode is the text of the ConfigMap, with a line feed at the end. Equal configurations give equal text.
func (c Config) Encode() (string, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", ConfigKey, err)
	}
	return string(b) + "\n", nil
}

// Load reads and checks the file.
func Load(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	c, err := Parse(b)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse decodes, fills in the defaults and validates. Unknown fields are
// accepted: a newer controller may write for an older manager during an upgrade.
func Parse(b []byte) (Config, error) {
	var c Config
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&c); err != nil {
		return Config{}, err
	}
	c.fill()
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// fill sets what was left out to the defaults of the resource.
func (c *Config) fill() {
	if c.Timing == (TimingConfig{}) {
		c.Timing = NewTiming(v1alpha1.TimingSpec{}.Effective())
	}
	def := func(d *metav1.Duration, v time.Duration) {
		if d.Duration == 0 {
			d.Duration = v
		}
	}
	def(&c.Health.Interval, 10*time.Second)
	def(&c.Health.Timeout, 15*time.Second)
	def(&c.PreStop.Timeout, 30*time.Second)
	def(&c.Commit.RelaxAfter, 15*time.Second)
	def(&c.StopTimeout, 60*time.Second)
	if c.Health.Threshold == "" {
		c.Health.Threshold = "system"
	}
	if c.Port == 0 {
		c.Port = v1alpha1.PortTDS
	}
	if c.EndpointPort == 0 {
		c.EndpointPort = v1alpha1.PortEndpoint
	}
}

// Validate says what is wrong, all of it.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch c.Kind {
	case KindAvailabilityGroup:
		if c.Group == "" {
			bad("group is empty: an availability group has a T-SQL name")
		}
		if len(c.Replicas) == 0 {
			bad("replicas is empty")
		}
		if c.External && c.Lease == "" {
			bad("lease is empty: an external group has an authority")
		}
	case KindInstance:
		if c.Lease != "" || c.Group != "" {
			bad("a standalone instance has neither lease nor group")
		}
	default:
		bad("kind %q is neither %s nor %s", c.Kind, KindAvailabilityGroup, KindInstance)
	}
	if c.Namespace == "" || c.Name == "" || c.UID == "" {
		bad("namespace, name and uid are needed")
	}
	if !c.AcceptEULA {
		bad("acceptEULA is false: SQL Server does not start before its licence terms are accepted")
	}
	if c.Edition == "" {
		bad("edition is empty")
	}
	if !slices.Contains([]string{"system", "resource", "query_processing"}, c.Health.Threshold) {
		bad("health.threshold %q is none of system, resource, query_processing", c.Health.Threshold)
	}
	if c.Health.Timeout.Duration < 10*time.Second {
		bad("health.timeout is %s: sp_server_diagnostics takes about 5 s on a healthy server, so at least 10s are needed", c.Health.Timeout.Duration)
	}
	if c.MemoryLimitMB != 0 && c.MemoryLimitMB < 1000 {
		bad("memoryLimitMB is %d: SQL Server does not start with so little", c.MemoryLimitMB)
	}
	for _, p := range []int32{c.Port, c.EndpointPort} {
		if p < 1 || p > 65535 {
			bad("port %d is not between 1 and 65535", p)
		}
	}
	if err := v1alpha1.Timing(c.Timing.AG()).Validate(); err != nil {
		errs = append(errs, err)
	}
	for key, value := range c.MSSQLConf {
		if err := validateSetting(key, value); err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// ReplicaNames lists the replicas by ordinal.
func (c Config) ReplicaNames() []string {
	names := make([]string, len(c.Replicas))
	for i, r := range c.Replicas {
		names[i] = r.Name
	}
	return names
}

// Address of a replica's manager by its stable name.
func (c Config) ManagerAddress(replica string) string {
	return fmt.Sprintf("%s.%s.%s.svc:%d", replica, c.Name, c.Namespace, v1alpha1.PortManager)
}

// Identity is what is special about one pod, from the downward API.
type Identity struct {
	Pod, Namespace, UID, IP, Node string
}

// IdentityFromEnv reads POD_NAME, POD_NAMESPACE, POD_UID, POD_IP and NODE_NAME.
func IdentityFromEnv(getenv func(string) string) (Identity, error) {
	id := Identity{
		Pod: getenv("POD_NAME"), Namespace: getenv("POD_NAMESPACE"), UID: getenv("POD_UID"),
		IP: getenv("POD_IP"), Node: getenv("NODE_NAME"),
	}
	var missing []string
	if id.Pod == "" {
		missing = append(missing, "POD_NAME")
	}
	if id.Namespace == "" {
		missing = append(missing, "POD_NAMESPACE")
	}
	if id.UID == "" {
		missing = append(missing, "POD_UID")
	}
	if len(missing) > 0 {
		return Identity{}, fmt.Errorf("environment: %s not set: the pod must pass them by the downward API",
			strings.Join(missing, ", "))
	}
	return id, nil
}
