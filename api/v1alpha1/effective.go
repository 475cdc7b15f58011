package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReplicaName is the name of the replica, pod and server with this ordinal.
func (g *SQLServerAvailabilityGroup) ReplicaName(ordinal int) string {
	return fmt.Sprintf("%s-%d", g.Name, ordinal)
}

// ReplicaNames lists all of them by ordinal.
func (g *SQLServerAvailabilityGroup) ReplicaNames() []string {
	names := make([]string, len(g.Spec.Replicas))
	for i := range g.Spec.Replicas {
		names[i] = g.ReplicaName(i)
	}
	return names
}

// ReplicaName is the pod's name.
func (i *SQLServerInstance) ReplicaName() string { return i.Name + "-0" }

// ServiceName is the Service that clients connect to.
func (i *SQLServerInstance) ServiceName() string {
	if i.Spec.Service.Name != "" {
		return i.Spec.Service.Name
	}
	return i.Name + "-client"
}

// MaxHostName is the longest host name that SQL Server takes (FG 7.4).
const MaxHostName = 15

// HostName of a replica's pod, which becomes @@SERVERNAME: the replica's own name,
// or, where that is longer than SQL Server takes, its beginning and a digest. Only
// standalone instances can have such names; an availability group's are refused.
func HostName(replica string) string {
	if len(replica) <= MaxHostName {
		return replica
	}
	sum := sha256.Sum256([]byte(replica))
	const digits = 6
	return strings.TrimRight(replica[:MaxHostName-digits-1], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// TSQLName is the group's name in T-SQL.
func (g *SQLServerAvailabilityGroup) TSQLName() string {
	if g.Spec.AGName != "" {
		return g.Spec.AGName
	}
	return strings.ReplaceAll(g.Name, "-", "_")
}

// ListenerName of the read-write Service.
func (g *SQLServerAvailabilityGroup) ListenerName() string {
	if g.Spec.Listener.Name != "" {
		return g.Spec.Listener.Name
	}
	return g.Name + "-rw"
}

// ReadOnlyListenerName of the read-only Service.
func (g *SQLServerAvailabilityGroup) ReadOnlyListenerName() string {
	if g.Spec.ReadOnlyListener.Name != "" {
		return g.Spec.ReadOnlyListener.Name
	}
	return g.Name + "-ro"
}

// SAPasswordSecret names the Secret and key of the sa password.
func (s *ServerSpec) SAPasswordSecret(owner string) (name, key string) {
	if s.SAPasswordSecretRef != nil {
		return s.SAPasswordSecretRef.Name, s.SAPasswordSecretRef.Key
	}
	return DefaultSAPasswordSecretName(owner), SAPasswordKey
}

// MemoryLimitMB is the server's memory.memorylimitmb for the container's limit: 80 % of
// it, as SQL Server itself would take, but never so much that the instance manager
// beside it has less than 128 MiB. 0 without a limit. When only a request is given
// nothing is derived: the node's memory is the limit then (FG 7.1).
func (s *ServerSpec) MemoryLimitMB() int64 {
	limit, ok := s.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return 0
	}
	return ServerMemoryMB(limit.Value())
}

// ServerMemoryMB is what a server may take of a container's limit in bytes.
func ServerMemoryMB(limit int64) int64 {
	mib := limit / (1 << 20)
	return min(mib*8/10, mib-128)
}

// AutomaticFailoverEnabled is the effective switch: on unless turned off, and only under EXTERNAL.
func (g *SQLServerAvailabilityGroup) AutomaticFailoverEnabled() bool {
	on := g.Spec.AutomaticFailover.Enabled
	return g.Spec.ClusterType != ClusterTypeNone && (on == nil || *on)
}

// Timing are the effective numbers of the write lease (safety.md §2).
type Timing struct {
	Renew, Call, A, Q, L, M time.Duration
}

// D is the full wait after which a silent holder can no longer write.
func (t Timing) D() time.Duration { return t.A + t.Q + t.L + t.M }

// Effective fills what the spec leaves out from the profile.
func (s TimingSpec) Effective() Timing {
	t := Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond,
		A: 5500 * time.Millisecond, Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond}
	switch s.Profile {
	case TimingFast:
		t.Renew, t.Call = 1500*time.Millisecond, time.Second
		t.A, t.Q, t.L, t.M = 4*time.Second, 2*time.Second, 10*time.Second, time.Second
	case TimingTolerant:
		t.A, t.Q, t.L, t.M = 6*time.Second, 3*time.Second, 30*time.Second, 2*time.Second
	case TimingBalanced, "":
	}
	set := func(d *time.Duration, v *int32, unit time.Duration) {
		if v != nil {
			*d = time.Duration(*v) * unit
		}
	}
	set(&t.Renew, s.RenewSeconds, time.Second)
	set(&t.A, s.AuthoritySeconds, time.Second)
	set(&t.Q, s.StatementSeconds, time.Second)
	set(&t.L, s.LeaseSeconds, time.Second)
	set(&t.M, s.MarginMilliseconds, time.Millisecond)
	if t.Call >= t.Renew {
		t.Call = t.Renew * 3 / 4
	}
	return t
}

// Validate checks the inequalities of safety.md §2 that CEL cannot see across a profile's defaults.
func (t Timing) Validate() error {
	switch {
	case t.Call >= t.Renew:
		return fmt.Errorf("timing: the call time-out %s must be below the renew interval %s", t.Call, t.Renew)
	case t.A < 2*t.Renew+t.Call:
		return fmt.Errorf("timing: authoritySeconds (%s) must be at least twice the renew interval plus the call time-out (%s)", t.A, 2*t.Renew+t.Call)
	case t.L < 3*t.Renew:
		return fmt.Errorf("timing: leaseSeconds (%s) must be at least three times the renew interval (%s)", t.L, 3*t.Renew)
	case t.M*25 < t.A+t.Q+t.L:
		return fmt.Errorf("timing: marginMilliseconds (%s) must be at least 4%% of A+q+L (%s)", t.M, t.A+t.Q+t.L)
	}
	return nil
}
