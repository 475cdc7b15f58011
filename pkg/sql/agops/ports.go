package agops

import (
	"context"
	"errors"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// Loaded is what a pass starts from.
type Loaded struct {
	Policy  ag.Policy
	Memory  ag.Memory
	Request *ag.Request
	// Authority is the Lease's record, read from the API server itself (R1).
	Authority ag.Authority
	// NoProof says why there is no record, when Authority.Exists is false.
	NoProof string
}

// Store keeps what must survive.
type Store interface {
	Load(ctx context.Context, key ag.Key) (Loaded, error)
	// Save writes the memory, if it is still before; ErrChanged when it is not.
	Save(ctx context.Context, key ag.Key, before, after ag.Memory) error
	// Swap replaces the record, if it is still before (R1); ErrChanged when it is not.
	Swap(ctx context.Context, key ag.Key, before ag.Authority, swap ag.Swap) (ag.Authority, error)
}

// Observer takes a snapshot; holder is the replica that the Lease names.
type Observer interface {
	Observe(ctx context.Context, key ag.Key, p ag.Policy, holder string) (ag.Snapshot, error)
}

// Servers opens a session with the server in one pod.
type Servers interface {
	Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error)
}

// SealOrder is what a manager is asked to persist (R22).
type SealOrder struct {
	AGUID string
	// Epoch below which holders get no failsafe answer.
	Epoch int64
	// Version of the Lease on which the swap is made.
	Version string
}

// Managers asks instance managers. Seal returns nil only when the seal is on the disk.
type Managers interface {
	Seal(ctx context.Context, key ag.Key, replica string, pod ag.Pod, order SealOrder) error
}

// Kube is the Kubernetes side of an action.
type Kube interface {
	// SetRole sets or takes away (RoleUnknown) the role label of the pod with this
	// UID, and with it the label of readable secondaries.
	SetRole(ctx context.Context, key ag.Key, replica, podUID string, role ag.Role, readable bool) error
}

// Executor carries out one action.
type Executor interface {
	Execute(ctx context.Context, pass Pass, action ag.Action) *ag.Error
}

// ErrChanged is what Store answers when somebody else was faster: stop, observe again.
var ErrChanged = errors.New("the object has changed since it was read")
