// Package live wires the engine to a Kubernetes API server and to the servers and
// instance managers in its pods. It is the only place that does: the controller and
// the plugin's --direct use it alike.
package live

import (
	"context"
	"crypto/rand"
	"net"
	"strconv"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/observe"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// DialPod connects to a port of a pod: by its address inside the cluster, or through
// a port-forward. It keeps the context's deadline.
type DialPod func(ctx context.Context, namespace, pod, ip string, port int32) (net.Conn, error)

// Options say where everything is.
type Options struct {
	// Client writes. Its reads may come from a cache.
	Client client.Client
	// Reader reads the API server itself: mgr.GetAPIReader(), or a plain client.
	Reader client.Reader
	// Dial reaches pods; nil dials their addresses.
	Dial DialPod
	// Clock is the real one outside tests.
	Clock clock.Clock
	// Identity is the owner of operations: "controller/<pod>", "direct/<user>@<host>".
	Identity string
	// Progress hears of everything that was tried; nil for nobody.
	Progress func(agops.Done)
}

// Login that the instance managers make at first start, with the rights of tsql.OperatorLogin.
const Login = "kubectl_mssql"

// System is a wired engine with its parts, for callers that need one of them alone.
type System struct {
	Engine   *agops.Engine
	Observer observe.Observer
	Servers  agops.Servers
	Store    state.Store

	pool     *pool
	identity string
}

// New wires everything. Close ends the sessions that are kept open between passes.
func New(o Options) *System {
	if o.Dial == nil {
		o.Dial = dialAddress
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	creds := &credentials{reader: o.Reader, clock: o.Clock, cached: map[ag.Key]cachedMaterial{}}
	fresh := servers{dial: o.Dial, credentials: creds, app: "kubectl-mssql " + o.Identity}
	kept := newPool(fresh, o.Clock)
	managers := managers{dial: o.Dial, credentials: creds}
	observer := observe.Observer{
		Cluster: state.Cluster{Reader: o.Client}, Servers: kept, Managers: managers, Clock: o.Clock,
		Patience: observe.NewPatience(o.Clock),
	}
	store := state.Store{Reader: o.Reader, Client: o.Client, Records: &state.Records{}}
	engine := agops.NewEngine(agops.Options{
		Observer: observer,
		Store:    store,
		Executor: agops.SQLExecutor{Servers: fresh, Managers: managers, Kube: state.Kube{Client: o.Client, Reader: o.Reader}, Clock: o.Clock},
		Setup:    &agops.Setup{Servers: fresh, Clock: o.Clock, Random: random},
		Clock:    o.Clock, Identity: o.Identity, Progress: o.Progress,
	})
	return &System{Engine: engine, Observer: observer, Servers: fresh, Store: store, pool: kept, identity: o.Identity}
}

// NewEngine wires an engine.
func NewEngine(o Options) *agops.Engine { return New(o).Engine }

// Close ends the sessions that are kept open between passes.
func (s *System) Close() { s.pool.close() }

func random(b []byte) error {
	_, err := rand.Read(b)
	return err
}

func dialAddress(ctx context.Context, _, _, ip string, port int32) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port))))
}

// podNet dials one port of one pod, whatever address it is asked for.
type podNet struct {
	dial               DialPod
	namespace, pod, ip string
	port               int32
}

// DialContext implements mssql.NetDialer.
func (p podNet) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return p.dial(ctx, p.namespace, p.pod, p.ip, p.port)
}

var _ mssql.NetDialer = podNet{}
