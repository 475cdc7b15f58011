// Package measure asks the instance managers of a resource how their servers are,
// through the API server: first its proxy to pods, then a port-forward, whichever the
// user may use and the network lets through.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/tunnel"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
)

// Timeout for one replica, all ways together.
const Timeout = 3 * time.Second

// maxReport bounds an answer: a thousand databases on nine replicas fit.
const maxReport = 8 << 20

// Answer of one replica: a report, or why there is none.
type Answer struct {
	Report managerapi.Report
	Err    error
}

// Asker asks one manager. The context has a deadline.
type Asker interface {
	Report(ctx context.Context, namespace, pod string) (managerapi.Report, error)
}

// All asks these pods in parallel, each with its own deadline.
func All(ctx context.Context, a Asker, namespace string, pods []string) map[string]Answer {
	answers := make([]Answer, len(pods))
	var wg sync.WaitGroup
	for i, pod := range pods {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, Timeout)
			defer cancel()
			answers[i].Report, answers[i].Err = a.Report(ctx, namespace, pod)
		})
	}
	wg.Wait()
	out := make(map[string]Answer, len(pods))
	for i, pod := range pods {
		out[pod] = answers[i]
	}
	return out
}

// ErrForbidden: the user may use neither way.
var ErrForbidden = errors.New("you may neither get pods/proxy nor create pods/portforward")

// ErrOld: the manager has no such page.
var ErrOld = errors.New("its instance manager is older than this plugin")

// API asks through the API server.
type API struct {
	config *rest.Config
	client rest.Interface
	http   *http.Client
}

// New makes an Asker; nothing is sent before it is asked.
func New(config *rest.Config) (*API, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1 // a handful of requests, all at once
	cs, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &API{config: c, client: cs.CoreV1().RESTClient(), http: h}, nil
}

// Report implements Asker.
func (a *API) Report(ctx context.Context, namespace, pod string) (managerapi.Report, error) {
	// The proxy gets most of the time: when the pod's network is cut, only time ends it.
	proxied, cancel := context.WithTimeout(ctx, Timeout*2/3)
	text, err := a.proxy(proxied, namespace, pod)
	cancel()
	if errors.Is(err, ErrForbidden) || errors.Is(err, errUnreachable) {
		forwarded, ferr := a.forward(ctx, namespace, pod)
		switch {
		case ferr == nil:
			text, err = forwarded, nil
		case errors.Is(err, ErrForbidden) && !errors.Is(ferr, ErrForbidden):
			err = ferr
		}
	}
	if err != nil {
		return managerapi.Report{}, err
	}
	var r managerapi.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return managerapi.Report{}, fmt.Errorf("read the answer of the manager of %s: %w", pod, err)
	}
	if r.Replica != pod {
		return managerapi.Report{}, fmt.Errorf("the manager of %q answered for %s", r.Replica, pod)
	}
	return r, nil
}

// errUnreachable: the API server could not reach the pod, or took too long.
var errUnreachable = errors.New("the API server cannot reach its instance manager")

func (a *API) proxy(ctx context.Context, namespace, pod string) ([]byte, error) {
	u := a.client.Get().Namespace(namespace).Resource("pods").Name("http:" + pod + ":" + strconv.Itoa(api.PortProbes)).
		SubResource("proxy").Suffix(managerapi.PathReport).URL()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w: no answer within %s", errUnreachable, Timeout*2/3)
		}
		return nil, fmt.Errorf("ask through the API server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	var status metav1.Status
	fromAPI := resp.StatusCode != http.StatusOK && json.Unmarshal(text, &status) == nil && status.Kind == "Status"
	switch {
	case resp.StatusCode == http.StatusOK:
		return text, nil
	case !fromAPI && resp.StatusCode == http.StatusNotFound:
		return nil, ErrOld
	case !fromAPI:
		return nil, fmt.Errorf("its instance manager answered %s", resp.Status)
	case resp.StatusCode == http.StatusForbidden:
		return nil, ErrForbidden
	case resp.StatusCode == http.StatusNotFound:
		return nil, errors.New("it has no pod")
	}
	return nil, fmt.Errorf("%w: %s", errUnreachable, status.Message)
}

func (a *API) forward(ctx context.Context, namespace, pod string) ([]byte, error) {
	t, err := tunnel.Open(ctx, a.config, namespace, pod, api.PortProbes)
	if err != nil {
		if strings.Contains(err.Error(), "forbidden") { // the upgrade's error has no type
			return nil, ErrForbidden
		}
		return nil, err
	}
	defer t.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.Addr()+managerapi.PathReport, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask the manager of %s: %w", pod, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotFound {
		return nil, ErrOld
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the manager of %s answered %s", pod, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxReport))
}
