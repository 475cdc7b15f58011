package managerapi

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ControllerName is the common name of the controller's client certificate.
const ControllerName = "kubectl-mssql-controller"

// Paths of the protocol.
const (
	PathStatus   = "/v1/status"
	PathSeal     = "/v1/seal"
	PathFailsafe = "/v1/failsafe"
	PathSeen     = "/v1/seen"
)

// maxBody bounds a request or an answer; the largest is a few kilobytes.
const maxBody = 1 << 16

// Peer is a manager to be asked.
type Peer struct {
	// Name of the replica: the common name that its certificate must carry.
	Name string
	// Address is host:port, normally <pod IP>:8443.
	Address string
}

// SealRequest asks a manager to refuse failsafe answers to holders below Epoch
// (safety.md R22). The seal names the Lease version on which the swap is made.
type SealRequest struct {
	AGUID string `json:"agUID"`
	Epoch int64  `json:"epoch"`
	// Version is the Lease's resourceVersion: the seal falls when another version with
	// an epoch below Epoch is seen.
	Version string `json:"version"`
}

// SealAnswer confirms a seal that is on the disk.
type SealAnswer struct {
	// Sealed is false when the manager refused; Reason says why.
	Sealed bool   `json:"sealed"`
	Reason string `json:"reason,omitempty"`
	// Manager is its status at that moment: how long ago it last answered a
	// failsafe question, its run, the highest epoch that it has seen.
	Manager ag.Manager `json:"manager"`
}

// FailsafeRequest asks another replica's manager whether Holder may go on as
// primary although the API server does not answer (safety.md §6).
type FailsafeRequest struct {
	AGUID   string `json:"agUID"`
	GroupID string `json:"groupID"`
	Epoch   int64  `json:"epoch"`
	Holder  ag.Run `json:"holder"`
}

// FailsafeAnswer counts as one piece of proof when Granted.
type FailsafeAnswer struct {
	Granted bool   `json:"granted"`
	Reason  string `json:"reason,omitempty"`
	// Nonce of the answering run, for the log.
	Nonce string `json:"nonce,omitempty"`
}

// Seen tells the highest epoch and rule number that the speaker knows (R4).
type Seen struct {
	AGUID string `json:"agUID"`
	Epoch int64  `json:"epoch"`
	Rule  int64  `json:"rule"`
	Swaps int64  `json:"swaps,omitempty"`
	// Holder of that epoch.
	Holder ag.Run `json:"holder"`
}

// Validate refuses what no well-meaning peer sends.
func (r SealRequest) Validate() error {
	switch {
	case r.AGUID == "":
		return fmt.Errorf("seal: agUID is empty")
	case r.Epoch <= 0:
		return fmt.Errorf("seal: epoch %d is not above zero", r.Epoch)
	case r.Version == "":
		return fmt.Errorf("seal: version is empty: a seal names the Lease version on which its swap is made")
	}
	return nil
}

// Validate refuses what no well-meaning peer sends.
func (r FailsafeRequest) Validate() error {
	switch {
	case r.AGUID == "":
		return fmt.Errorf("failsafe: agUID is empty")
	case r.Epoch <= 0:
		return fmt.Errorf("failsafe: epoch %d is not above zero", r.Epoch)
	case r.Holder.Zero() || r.Holder.Replica == "":
		return fmt.Errorf("failsafe: holder is not a run")
	}
	return nil
}

// Validate refuses what no well-meaning peer sends.
func (s Seen) Validate() error {
	if s.AGUID == "" || s.Epoch < 0 || s.Rule < 0 {
		return fmt.Errorf("seen: agUID, epoch and rule are needed")
	}
	return nil
}
