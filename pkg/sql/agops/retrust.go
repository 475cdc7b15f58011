package agops

import (
	"context"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// trustStep is the name under which it is told.
const trustStep = "exchange endpoint certificates"

// trusted is what this process knows of one group's exchange of certificates.
type trusted struct {
	// pairs of replica names, with the certificates and runs between which it was made.
	pairs map[[2]string][2]string
	// next try, by the process' own clock, after one that has failed.
	next time.Duration
}

// renewTrust exchanges the endpoint certificates again when two servers answer that were
// not seen to have each other's: a server that was away while another one came with a new
// volume, and so with a new certificate, could not be told of it, and neither could ever
// follow the other. Each run of a server is asked once: its volume may be an older copy.
func (e *Engine) renewTrust(ctx context.Context, r *Report) {
	op := r.Authority.Operation
	if !r.Memory.Initialized || r.Policy.Paused || op != nil && len(r.Decision.Blocks) == 0 {
		return
	}
	e.mu.Lock()
	t := e.trust[r.Policy.UID]
	if t == nil {
		t = &trusted{pairs: map[[2]string][2]string{}}
		e.trust[r.Policy.UID] = t
	}
	pairs := trustPairs(r.Snapshot)
	due := e.clock.Since(e.started) >= t.next && !t.has(pairs)
	e.mu.Unlock()
	if !due {
		return
	}
	started := e.clock.Now()
	err := e.setup.exchangeTrust(ctx, r)
	e.tell(Done{Key: r.Key, What: trustStep, Err: mssql.AsError(err), Took: e.clock.Since(started)})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		t.next = e.clock.Since(e.started) + firstDelay
		return
	}
	for names, what := range pairs {
		t.pairs[names] = what
	}
}

func (t *trusted) has(pairs map[[2]string][2]string) bool {
	for names, what := range pairs {
		if t.pairs[names] != what {
			return false
		}
	}
	return true
}

// trustPairs are the servers that answer, two by two. A group whose endpoints use a
// certificate of somebody else's making is left to whoever has made it.
func trustPairs(snap ag.Snapshot) map[[2]string][2]string {
	var names, what []string
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if r.Local.Reach != ag.ReachOK || r.Local.Endpoint == ag.EndpointMissing || r.Local.Endpoint == "" {
			continue
		}
		if !strings.HasPrefix(strings.ToLower(r.Local.EndpointCertificate), certificatePrefix) {
			return nil
		}
		names, what = append(names, r.Name), append(what, r.Local.EndpointCertificate+"/"+r.Manager.Nonce)
	}
	pairs := map[[2]string][2]string{}
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			pairs[[2]string{names[i], names[j]}] = [2]string{what[i], what[j]}
		}
	}
	return pairs
}
