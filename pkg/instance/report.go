//go:build linux

package instance

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// serveReport answers people who ask how this server is.
func (m *manager) serveReport(w http.ResponseWriter, r *http.Request) {
	if m.cfg.Group != "" {
		m.askForCopies(r.Context())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(m.report()) // the connection is gone when this fails
}

// report puts the view into words. Numbers older than copiesAge are left out: they would
// look like a lag that stands still.
func (m *manager) report() managerapi.Report {
	now := m.clock.now().Mono
	v := m.view.snapshot()
	a := m.authority.get()
	out := managerapi.Report{
		Replica: m.id.Pod, Server: string(v.phase), Problem: v.loginProblem, Epoch: a.Persisted.Epoch, Holder: a.GrantedEpoch > 0,
		Unusable: []string{}, Copies: []managerapi.Copy{}, Seeding: []managerapi.Seeding{},
	}
	if v.accepted && now-v.acceptedAt <= readyAge {
		out.Problem = ""
	}
	if v.apiKnown {
		out.APISilenceSeconds = inSeconds(now - v.apiOK)
	}
	if v.localKnown {
		out.Role, out.Sequence, out.Follows = v.local.role, v.local.sequence, v.local.primary
		out.CommitPendingSeconds = v.local.pending.Seconds()
		out.Unusable = append(out.Unusable, v.local.sick...)
		if v.local.role != ag.RoleNone {
			k := v.local.k
			out.RequiredToCommit = &k
		}
		if v.local.leaseKnown {
			out.LeaseRemainingSeconds = inSeconds(v.local.lease)
		}
	}
	c := v.copies
	switch {
	case m.cfg.Group == "":
	case !c.known || now-c.at > copiesAge:
		out.MeasureProblem = orElse(v.copiesProblem, orElse(out.Problem, "the server was not asked yet"))
	default:
		out.MeasuredAgoSeconds, out.MeasureProblem = inSeconds(now-c.at), v.copiesProblem
		out.Copies = append(out.Copies, c.copies...)
		out.Seeding = append(out.Seeding, c.seeding...)
		if c.endpoint {
			out.Endpoint = "STOPPED"
			if c.endpointUp {
				out.Endpoint = string(ag.EndpointStarted)
			}
		}
		if !c.certExpiry.IsZero() {
			out.CertificateExpiry = &c.certExpiry
		}
	}
	return out
}

func inSeconds(d time.Duration) *float64 {
	s := d.Round(time.Millisecond).Seconds()
	return &s
}
