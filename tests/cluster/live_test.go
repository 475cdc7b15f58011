package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

const (
	liveName   = "kmslive"
	probeImage = "kmssql.local/probe:1"
)

// probes are one pod a node: web has a volume and a Service, peer has neither.
const probes = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: site}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeSelector: {kubernetes.io/hostname: node1}
  terminationGracePeriodSeconds: 2
  securityContext: {runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001, runAsNonRoot: true}
  containers:
  - name: probe
    image: kmssql.local/probe:1
    readinessProbe: {httpGet: {path: /seen, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Pod
metadata: {name: peer}
spec:
  nodeSelector: {kubernetes.io/hostname: node2}
  terminationGracePeriodSeconds: 2
  containers: [{name: probe, image: kmssql.local/probe:1}]
`

type live struct {
	*cluster.Local
	t *testing.T
}

// TestLive drives a real cluster of two nodes through everything that the
// end-to-end tests rely on. It needs root and some minutes the first time.
func TestLive(t *testing.T) {
	if os.Getenv("KUBECTL_MSSQL_E2E") != "1" {
		t.Skip("set KUBECTL_MSSQL_E2E=1 to make a cluster on this machine")
	}
	o := cluster.OptionsFromEnv()
	o.Mode, o.Name, o.Root, o.Out = cluster.ModeLocal, liveName, "", os.Stderr
	c, err := cluster.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{Local: c.(*cluster.Local), t: t}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := c.Down(ctx); err != nil {
			t.Error(err)
		}
		nothingLeft(t)
	})
	l.must(c.Up(ctx, 2))
	l.must(c.LoadImage(ctx, buildProbe(ctx, t)))
	l.apply(ctx, probes)
	if _, err := l.try(ctx, "wait", "--for=condition=Ready", "pod/web", "pod/peer", "--timeout=120s"); err != nil {
		t.Fatal(err, "\n", l.kubectl(ctx, "describe", "pods"))
	}
	web, peer := l.podIP(ctx, "web"), l.podIP(ctx, "peer")

	t.Run("a pod as 10001 may write its volume", func(t *testing.T) {
		l.within(t, "POST file", func() error { _, err := fetch(ctx, http.MethodPost, web, "/file", "kept"); return err })
		if got := l.kubectl(ctx, "logs", "web"); !strings.Contains(got, "probe runs as 10001:10001") {
			t.Errorf("logs: %q", got)
		}
	})
	t.Run("exec and port-forward reach the pod", func(t *testing.T) {
		if _, err := l.try(ctx, "exec", "web", "--", "/probe", "--version"); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("a second probe in the pod: got %v, want it to find the first one's port taken", err)
		}
		l.portForward(ctx, t, "kept")
	})
	t.Run("names and Services work from another node and from the pod itself", func(t *testing.T) {
		for _, from := range []string{peer, web} {
			l.within(t, "lookup", func() error {
				got, err := ask(ctx, from, "/lookup", "name", "site.default.svc.cluster.local")
				if err == nil && !strings.HasPrefix(got, "10.") {
					err = fmt.Errorf("got %q", got)
				}
				return err
			})
			l.within(t, "get", func() error { return want(ctx, from, "http://site/file", "kept") })
		}
	})
	t.Run("a claim grows while it is mounted", func(t *testing.T) {
		l.kubectl(ctx, "patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		l.kubectl(ctx, "wait", "pvc/data", "--for=jsonpath={.status.capacity.storage}=2Gi", "--timeout=60s")
	})
	t.Run("a one-way cut loses one way only", func(t *testing.T) {
		l.must(l.Partition(ctx, "node2", cluster.Cut{From: "node1", Direction: cluster.Out}))
		for to, from := range map[string]string{web: peer, peer: web} {
			_, err := ask(ctx, from, "/send", "to", to+":9000", "text", "during")
			l.must(err)
		}
		l.within(t, "datagram to node2", func() error { return received(ctx, peer, "during") })
		l.must(l.Heal(ctx, "node2"))
		_, err := ask(ctx, peer, "/send", "to", web+":9000", "text", "after")
		l.must(err)
		l.within(t, "datagram to node1", func() error { return received(ctx, web, "after") })
		if err := received(ctx, web, "during"); err == nil {
			t.Error("the datagram that should be lost arrived")
		}
	})
	t.Run("a node without the API goes on serving", func(t *testing.T) {
		l.must(l.Partition(ctx, "node1", cluster.Cut{From: cluster.PeerAPI}))
		l.kubectl(ctx, "wait", "node/node1", "--for=condition=Ready=Unknown", "--timeout=90s")
		l.within(t, "get", func() error { return want(ctx, peer, "http://"+web+":8080/file", "kept") })
		l.must(l.Heal(ctx, "node1"))
		l.kubectl(ctx, "wait", "node/node1", "--for=condition=Ready", "--timeout=90s")
	})
	t.Run("a frozen node is silent and then goes on", func(t *testing.T) {
		l.must(l.Freeze(ctx, "node1"))
		if err := want(ctx, peer, "http://"+web+":8080/file", "kept"); err == nil {
			t.Error("a frozen pod answered")
		}
		l.must(l.Thaw(ctx, "node1"))
		l.within(t, "get", func() error { return want(ctx, peer, "http://"+web+":8080/file", "kept") })
	})
	t.Run("a killed node comes back with its volumes", func(t *testing.T) {
		l.must(l.Kill(ctx, "node1"))
		if err := want(ctx, peer, "http://"+web+":8080/file", "kept"); err == nil {
			t.Error("a pod of a dead node answered")
		}
		l.must(l.Start(ctx, "node1"))
		l.within(t, "file after the restart", func() error {
			got, err := fetch(ctx, http.MethodGet, l.podIP(ctx, "web"), "/file", "")
			if err == nil && got != "kept" {
				err = fmt.Errorf("got %q", got)
			}
			return err
		})
	})
	t.Run("a node that comes later has the images", func(t *testing.T) {
		name, err := l.AddNode(ctx)
		l.must(err)
		l.kubectl(ctx, "run", "late", "--image="+probeImage, `--overrides={"spec":{"nodeName":"`+name+`"}}`)
		l.kubectl(ctx, "wait", "--for=condition=Ready", "pod/late", "--timeout=60s")
	})
	// Down has to cope with nodes in every state.
	l.must(errors.Join(l.Freeze(ctx, "node1"), l.Partition(ctx, "node2", cluster.Cut{}), l.Kill(ctx, "node3")))
}

func (l *live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Kubectl(), append([]string{"--kubeconfig", l.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (l *live) kubectl(ctx context.Context, args ...string) string {
	l.t.Helper()
	out, err := l.try(ctx, args...)
	l.must(err)
	return out
}

func (l *live) apply(ctx context.Context, manifest string) {
	l.t.Helper()
	cmd := exec.CommandContext(ctx, l.Kubectl(), "--kubeconfig", l.Kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("apply: %v: %s", err, out)
	}
}

func (l *live) podIP(ctx context.Context, pod string) string {
	l.t.Helper()
	return l.kubectl(ctx, "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
}

// portForward reads the file through a forwarded port that kubectl chooses.
func (l *live) portForward(ctx context.Context, t *testing.T, content string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.Kubectl(), "--kubeconfig", l.Kubeconfig(), "port-forward", "pod/web", ":8080")
	out, err := cmd.StdoutPipe()
	l.must(err)
	l.must(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }()
	line := make([]byte, 200)
	n, err := out.Read(line)
	l.must(err)
	// Forwarding from 127.0.0.1:41357 -> 8080
	f := strings.Fields(string(line[:n]))
	if len(f) < 3 {
		t.Fatalf("port-forward said %q", line[:n])
	}
	l.within(t, "get through the forwarded port", func() error {
		got, err := fetchURL(ctx, http.MethodGet, "http://"+f[2]+"/file", "")
		if err == nil && got != content {
			err = fmt.Errorf("got %q", got)
		}
		return err
	})
}

// within retries for a while, for what needs a moment in a cluster.
func (l *live) within(t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(60 * time.Second); ; <-tick.C {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// ask sends a request with query pairs to the probe with the address.
func ask(ctx context.Context, ip, path string, query ...string) (string, error) {
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		v.Set(query[i], query[i+1])
	}
	return fetch(ctx, http.MethodGet, ip, path+"?"+v.Encode(), "")
}

// want has the probe fetch a page.
func want(ctx context.Context, from, page, content string) error {
	got, err := ask(ctx, from, "/get", "url", page)
	if err == nil && got != content {
		err = fmt.Errorf("got %q, want %q", got, content)
	}
	return err
}

// received looks for a datagram that the probe got.
func received(ctx context.Context, at, text string) error {
	got, err := ask(ctx, at, "/seen")
	if err == nil && !strings.Contains(got, text) {
		err = fmt.Errorf("got the datagrams %q, want %q", got, text)
	}
	return err
}

func fetch(ctx context.Context, method, ip, path, body string) (string, error) {
	return fetchURL(ctx, method, "http://"+ip+":8080"+path, body)
}

func fetchURL(ctx context.Context, method, address, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, data)
	}
	return string(data), err
}

func buildProbe(ctx context.Context, t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "probe"), "./cmd/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v: %s", err, out)
	}
	archive := filepath.Join(dir, "probe.tar")
	err := image.BuildFile(archive, image.Options{
		Tags: []string{probeImage}, Entrypoint: []string{"/probe"},
		Files: []image.File{{Path: "/probe", Source: filepath.Join(dir, "probe"), Mode: 0o755}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// nothingLeft checks the machine after Down.
func nothingLeft(t *testing.T) {
	t.Helper()
	links, err := filepath.Glob("/sys/class/net/" + liveName + "*")
	if err != nil || len(links) > 0 {
		t.Errorf("links: %v, %v", links, err)
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(p), liveName) {
			t.Errorf("cgroup: %s", p)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	const root = "/var/opt/kubectl-mssql/" + liveName
	if found, err := filepath.Glob(root + "*"); err != nil || len(found) > 0 {
		t.Errorf("files: %v, %v", found, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), root) {
		t.Errorf("mounts below %s are left (%v)", root, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, c := range commands {
		line, err := os.ReadFile(c)
		if err == nil && strings.Contains(string(line), root) {
			t.Errorf("process %s: %s", c, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
