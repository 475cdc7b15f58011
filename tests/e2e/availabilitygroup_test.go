package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// The main job, step by step on one cluster; each step needs the ones before it.
func TestAvailabilityGroup(t *testing.T) {
	e := shared
	e.createNamespace(t)
	step := func(name string, f func(t *testing.T)) {
		if !t.Run(name, f) {
			t.FailNow()
		}
	}

	step("install, and a second time changes nothing", func(t *testing.T) {
		e.plugin(t, 4*time.Minute, "install").must(t, 0)
		again := e.plugin(t, 2*time.Minute, "install").must(t, 0)
		for _, l := range strings.Split(strings.TrimSpace(again.stdout), "\n") {
			if !strings.HasSuffix(l, " unchanged") {
				t.Errorf("the second run changed something: %s", l)
			}
		}
		if !strings.Contains(again.stderr, "unchanged") {
			t.Error("the second run does not say unchanged")
		}
	})

	step("create a group of three and wait until it is healthy", func(t *testing.T) {
		e.plugin(t, 6*time.Minute, "create", "ag", "demo", "-n", namespace, "--replicas", "3", "--database", "orders", "--accept-eula",
			"--image", e.image, "--image-pull-policy", "IfNotPresent", "--storage", "1Gi", "--cpu", "10m", "--timeout", "5m").must(t, 0)
		s := e.plugin(t, 20*time.Second, "status", "demo", "-n", namespace, "--exit-code").must(t, 0)
		if !strings.Contains(s.stdout, "Healthy") || !strings.Contains(s.stdout, "demo-2") {
			t.Error("the status screen does not show a healthy group")
		}
	})

	step("sqlcmd inside the container works", func(t *testing.T) {
		out := e.kubectl(t, "-n", namespace, "exec", "demo-0", "-c", "mssql", "--", "/bin/sh", "-c",
			`/opt/mssql-tools18/bin/sqlcmd -S localhost -U sa -P "$(cat /etc/kubectl-mssql/sa/password)" -C -h -1 -Q "SET NOCOUNT ON; SELECT @@SERVERNAME"`).must(t, 0)
		if strings.TrimSpace(out.stdout) != "demo-0" {
			t.Errorf("sqlcmd printed %q", out.stdout)
		}
	})

	step("a planned failover moves the primary and loses nothing", func(t *testing.T) {
		w := e.startWriter(t, "demo", "planned", "")
		ep := e.watchEndpoints(t, "demo-rw")
		w.reset(t)
		e.plugin(t, 3*time.Minute, "failover", "demo", "-n", namespace, "--to", "demo-1", "--yes").must(t, 0)
		w.waitCount(t, 50, time.Minute)
		g := e.waitGroup(t, "demo", "healthy with demo-0 as synchronized secondary", 3*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
			return healthy(g) && g.Status.PrimaryReplica == "demo-1"
		})
		ep.finish(t)
		r := w.check(t)
		t.Logf("client-seen outage of the planned failover: %.1f s", r.LongestGap)
		if st := replica(g, "demo-0"); st.Role != "SECONDARY" || st.SynchronizationState != "SYNCHRONIZED" {
			t.Errorf("demo-0 is %s, %s", st.Role, st.SynchronizationState)
		}
		again := e.plugin(t, time.Minute, "failover", "demo", "-n", namespace, "--to", "demo-1", "--yes").must(t, 0)
		if !strings.Contains(again.stderr, "primary already") {
			t.Error("the same move again does not say that it is done already")
		}
	})

	step("a deleted secondary comes back by itself", func(t *testing.T) {
		w := e.startWriter(t, "demo", "secondary", "")
		uid := e.deletePod(t, "demo-2", nil)
		e.waitGroup(t, "demo", "healthy with a new demo-2", 4*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
			return healthy(g) && e.podUID(t, "demo-2") != uid
		})
		w.waitCount(t, 20, time.Minute)
		w.check(t)
	})

	step("a deleted primary hands over and comes back by itself", func(t *testing.T) {
		w := e.startWriter(t, "demo", "primary", "")
		ep := e.watchEndpoints(t, "demo-rw")
		w.reset(t)
		old := e.group(t, "demo").Status.PrimaryReplica
		uid := e.deletePod(t, old, nil)
		w.waitCount(t, 50, 2*time.Minute)
		e.waitGroup(t, "demo", "healthy again", 4*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
			return healthy(g) && g.Status.PrimaryReplica != old && e.podUID(t, old) != uid
		})
		ep.finish(t)
		r := w.check(t)
		t.Logf("client-seen outage of the primary's graceful deletion: %.1f s", r.LongestGap)
	})

	step("bad input is refused or explained", func(t *testing.T) {
		e.plugin(t, time.Minute, "create", "ag", "far-too-long-name", "-n", namespace, "--accept-eula").must(t, 2)
		e.plugin(t, time.Minute, "create", "ag", "noeula", "-n", namespace).must(t, 2)
		for name, tc := range map[string]struct {
			change func(*api.SQLServerAvailabilityGroup)
			want   string
		}{
			"longnamelonger": {func(*api.SQLServerAvailabilityGroup) {}, "13 characters"},
			"noeula":         {func(g *api.SQLServerAvailabilityGroup) { g.Spec.AcceptEula = "N" }, "acceptEula"},
			"lowmem":         {func(g *api.SQLServerAvailabilityGroup) { g.Spec.Resources.Limits = memory("1Gi") }, "2000Mi"},
			"ownedkey":       {func(g *api.SQLServerAvailabilityGroup) { g.Spec.MSSQLConf = map[string]string{"network.tcpport": "1"} }, "owns them"},
			"asyncfirst": {func(g *api.SQLServerAvailabilityGroup) {
				g.Spec.Replicas[0].AvailabilityMode = api.AsynchronousCommit
				g.Spec.Replicas[0].FailoverMode = api.FailoverManual
			}, "first replica"},
		} {
			g := e.bad(name)
			tc.change(g)
			err := e.client.Create(t.Context(), g)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want a refusal with %q", name, err, tc.want)
			}
		}
		for name, tc := range map[string]struct {
			change func(*api.SQLServerAvailabilityGroup)
			reason string
		}{
			"nosecret": {func(g *api.SQLServerAvailabilityGroup) { g.Spec.SAPasswordSecretRef = secretKey("missing") }, api.ReasonSecretMissing},
			"weak":     {func(g *api.SQLServerAvailabilityGroup) { g.Spec.SAPasswordSecretRef = secretKey("weak") }, api.ReasonWeakPassword},
			"noimage": {func(g *api.SQLServerAvailabilityGroup) {
				g.Spec.Image, g.Spec.ImagePullPolicy = "no-such-image:1", corev1.PullNever
			}, api.ReasonImagePullFailed},
		} {
			t.Run(name, func(t *testing.T) {
				if name == "weak" {
					s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weak"}, StringData: map[string]string{"SA_PASSWORD": "short"}}
					if err := e.client.Create(t.Context(), s); err != nil {
						t.Fatal(err)
					}
				}
				g := e.bad(name)
				tc.change(g)
				if err := e.client.Create(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				e.waitGroup(t, name, "explained", 90*time.Second, func(g *api.SQLServerAvailabilityGroup) bool {
					for _, c := range g.Status.Conditions {
						if c.Type == api.ConditionConfigured && c.Status == metav1.ConditionFalse && c.Reason == tc.reason && c.Message != "" {
							return true
						}
					}
					return false
				})
				if err := e.client.Delete(t.Context(), g); err != nil {
					t.Error(err)
				}
			})
		}
	})

	step("uninstall keeps definitions, groups, data and running servers", func(t *testing.T) {
		w := e.startWriter(t, "demo", "uninstall", "")
		e.plugin(t, time.Minute, "uninstall").must(t, 5)
		e.plugin(t, 2*time.Minute, "uninstall", "--yes").must(t, 0)
		w.waitCount(t, 50, time.Minute)
		if g := e.group(t, "demo"); g.Status.PrimaryReplica == "" {
			t.Error("the group is gone")
		}
		w.check(t)
		e.plugin(t, 4*time.Minute, "install").must(t, 0)
		e.waitGroup(t, "demo", "healthy under the new operator", 2*time.Minute, healthy)
	})
}

func replica(g *api.SQLServerAvailabilityGroup, name string) api.ReplicaStatus {
	for _, r := range g.Status.ReplicaStatuses {
		if r.Name == name {
			return r
		}
	}
	return api.ReplicaStatus{}
}

// deletePod deletes a pod as a person would, and gives the UID that it had.
func (e *env) deletePod(t *testing.T, name string, grace *int64) string {
	t.Helper()
	uid := e.podUID(t, name)
	opts := []client.DeleteOption{}
	if grace != nil {
		opts = append(opts, client.GracePeriodSeconds(*grace))
	}
	if err := e.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, opts...); err != nil {
		t.Fatal(err)
	}
	return uid
}

// podUID is empty while there is no such pod.
func (e *env) podUID(t *testing.T, name string) string {
	t.Helper()
	var p corev1.Pod
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		return ""
	}
	return string(p.UID)
}
