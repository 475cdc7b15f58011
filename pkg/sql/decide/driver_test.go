package decide

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// input is one pass' input; it is nothing when the controller cannot read the Lease.
func (w *world) input() (Input, bool) {
	if !w.ctlUp || !w.canAPI("controller") {
		return Input{}, false
	}
	up := w.now - w.ctlSince
	return Input{
		Now: epochStart.Add(w.now), Clock: ag.Clock{Began: up, Ended: up}, Observer: w.observer,
		Authority: w.lease.Clone(), Snapshot: w.snapshot(), Policy: w.policy, Memory: w.memory, Watch: w.watch, Request: w.request,
	}, true
}

// pass is one turn of the controller; it returns what it did, as text.
func (w *world) pass() []string {
	in, ok := w.input()
	if !ok {
		return nil
	}
	if w.standby {
		w.watch = Look(in.Watch, in.Authority, in.Clock, in.Policy.Timing.Renew)
		return nil
	}
	d := decide(in, w.knobs)
	w.invariants(in, d)
	w.memory, w.watch = d.Memory, d.Watch
	var outcomes []ag.Outcome
	var lines []string
	var asked, answered []string
	for _, a := range d.Actions {
		if x, ok := a.(ag.Swap); ok {
			a = x.Promised(asked, answered)
		}
		err := w.execute(a)
		line := a.String()
		if err != nil {
			line += " -> " + err.Error()
		}
		lines = append(lines, line)
		outcomes = append(outcomes, ag.Outcome{Action: a, Err: err, StartedAt: in.Now})
		if p, ok := a.(ag.Promise); ok {
			if asked, answered = p.Replicas, p.Answered(err); len(answered) > 0 {
				continue
			}
		}
		if err != nil {
			break
		}
	}
	w.memory = Record(w.memory, outcomes, in.Now)
	w.memory.Swaps = max(w.memory.Swaps, w.lease.Swaps)
	return lines
}

// execute carries one action out on the model.
func (w *world) execute(a ag.Action) *ag.Error {
	reach := func(name string) (*server, *ag.Error) {
		s := w.find(name)
		if s == nil || !w.alive(s) || s.frozen || !w.linked("controller", name) {
			return nil, &ag.Error{Kind: ag.ErrTimeout, Message: "no answer from " + name}
		}
		return s, nil
	}
	guard := func(s *server, g ag.Guard) *ag.Error {
		if g.PodUID != "" && g.PodUID != s.podUID || g.Role != "" && g.Role != s.role {
			return &ag.Error{Kind: ag.ErrGuard, Message: "the guard does not hold"}
		}
		return nil
	}
	switch a := a.(type) {
	case ag.Swap:
		if a.Next.Version != w.lease.Version && w.lease.Exists {
			return &ag.Error{Kind: ag.ErrConflict, Message: "the Lease has changed"}
		}
		renewals := w.lease.Renewals
		w.lease = a.Next.Clone()
		w.lease.Renewals = renewals
		w.lease.Swaps = max(w.lease.Swaps, w.snapshot().HighestSwaps(), w.memory.Swaps) + 1
		w.bump()
	case ag.Promote:
		return w.failover(a, reach, guard)
	case ag.TakeOffline:
		s, err := reach(a.Replica)
		if err != nil {
			return err
		}
		if err := guard(s, a.Guard); err != nil {
			return err
		}
		if w.beforeOffline != nil {
			w.beforeOffline(s)
		}
		w.offline(s)
	case ag.Promise:
		var first *ag.Error
		for _, name := range a.Replicas {
			s, err := reach(name)
			if err == nil {
				w.offline(s)
				continue
			}
			if first == nil {
				first = err
			}
			first.Failed = append(first.Failed, name)
		}
		return first
	case ag.Reseat:
		s, err := reach(a.Replica)
		if err != nil {
			return err
		}
		if err := guard(s, a.Guard); err != nil {
			return err
		}
		if s.latched {
			return &ag.Error{Kind: ag.ErrMsg, Number: ag.MsgResourcePreviousError, Message: "the resource had an earlier error"}
		}
		if s.role == ag.RolePrimary {
			w.violation("a PRIMARY was re-seated: %s", s.name)
		}
		s.role = ag.RoleSecondary
		w.takeBack(s)
	case ag.RestartEndpoints:
		if len(a.Replicas) == 2 {
			if s := w.find(a.Replicas[0]); s != nil && s.role == ag.RoleResolving {
				s.latched = false
			}
		}
	case ag.StopEndpoints, ag.StartEndpoints:
		for _, name := range endpointsOf(a) {
			if s := w.find(name); s != nil {
				s.endpoint = ag.EndpointStarted
			}
		}
	case ag.Reseed:
		if s := w.find(a.Replica); s != nil && len(a.Databases) > 0 {
			s.broken, s.log, s.suspend = false, nil, false
		}
		return w.execute(ag.Rejoin{Replica: a.Replica, Guard: a.Guard})
	case ag.Rejoin:
		s, err := reach(a.Replica)
		if err != nil {
			return err
		}
		if err := guard(s, a.Guard); err != nil {
			return err
		}
		w.offline(s)
		s.latched, s.role, s.cfg = false, ag.RoleNone, config{}
		if !w.join(s) {
			return &ag.Error{Kind: ag.ErrMsg, Number: 47106, Message: "the configuration did not arrive"}
		}
	case ag.SetRoleLabel:
		if w.labelsOff {
			return &ag.Error{Kind: ag.ErrAPI, Message: "denied by policy"}
		}
		w.setLabel(a)
	case ag.Seal:
		return w.seal(a)
	case ag.ResumeDatabase:
		s, err := reach(a.Replica)
		if err != nil {
			return err
		}
		s.suspend = false
	case ag.SetCommitRule:
	}
	return nil
}

func endpointsOf(a ag.Action) []string {
	switch a := a.(type) {
	case ag.StopEndpoints:
		return a.Replicas
	case ag.StartEndpoints:
		return a.Replicas
	}
	return nil
}

func (w *world) offline(s *server) {
	if s.role == ag.RoleNone {
		return
	}
	s.role, s.becoming, s.waiting, s.pending, s.deaf = ag.RoleResolving, 0, nil, 0, false
	s.lostOne = false
}

func (w *world) setLabel(a ag.SetRoleLabel) {
	w.find(a.Replica).label = a.Role
	n := 0
	for _, s := range w.servers {
		if s.label == ag.RolePrimary && !s.gone {
			n++
		}
	}
	if n > 1 {
		w.violation("two pods carry the primary's label")
	}
	if s := w.find(a.Replica); a.Role == ag.RolePrimary && s.role != ag.RolePrimary {
		w.violation("%s carries the primary's label and is %s", s.name, s.role)
	}
}

func (w *world) seal(a ag.Seal) *ag.Error {
	n, candidate := 0, false
	for i, name := range a.Replicas {
		s := w.find(name)
		if s == nil || !w.alive(s) || !w.linked("controller", name) {
			continue
		}
		var ans lease.SealAnswer
		s.mgr, ans = s.mgr.TakeSeal(lease.Seal{AGUID: crUID, Epoch: a.Epoch, Version: a.Version}, w.now)
		s.disk = s.mgr.Persisted
		if ans.OK {
			n++
			candidate = candidate || i == 0
		}
	}
	if n < a.Need || !candidate {
		return &ag.Error{Kind: ag.ErrUnreachable, Message: fmt.Sprintf("%d of %d seals", n, a.Need)}
	}
	return nil
}

// failover is FAILOVER or FORCE on the target (FG 4.1).
func (w *world) failover(a ag.Promote, reach func(string) (*server, *ag.Error), guard func(*server, ag.Guard) *ag.Error) *ag.Error {
	if len(w.lease.Unfenced) > 0 {
		w.violation("FAILOVER on %s while %d grants are unfenced", a.Replica, len(w.lease.Unfenced))
	}
	s, err := reach(a.Replica)
	if err != nil {
		return err
	}
	if err := guard(s, a.Guard); err != nil {
		return err
	}
	if w.promoteErr != nil {
		return w.promoteErr
	}
	if !a.Force && (w.refuseAll || !s.cfg.has(s.name)) {
		return &ag.Error{Kind: ag.ErrMsg, Number: ag.MsgNotSynchronized, Message: "not synchronized"}
	}
	s.leaseEnd = max(s.leaseEnd, w.now+a.Lease)
	s.becoming, s.forced = w.now+w.slow, a.Force
	if a.Force && w.policy.External {
		for _, o := range w.servers {
			if o != s {
				o.suspend = true
			}
		}
		for x := range w.acked {
			if !containsInt(s.log, x) {
				w.lost[x] = true
			}
		}
	}
	if s.role == ag.RoleSecondary {
		s.role = ag.RoleResolving
	}
	return nil
}

// invariants are checked after every pass of every scenario.
func (w *world) invariants(in Input, d ag.Decision) {
	disruptive := 0
	for _, a := range d.Actions {
		if a.Disruptive() {
			disruptive++
		}
		if r, ok := a.(ag.Reseat); ok && r.Replica == in.Authority.Holder.Replica {
			w.violation("the holder is re-seated")
		}
	}
	if disruptive > 1 {
		w.violation("%d disruptive steps in one pass", disruptive)
	}
	w.promoteIsCovered(in, d)
	if w.sparse > 1 && int(w.now/beat)%w.sparse != 0 {
		return // random schedules check the costly ones now and then
	}
	again := decide(in, w.knobs)
	if diff := cmp.Diff(d, again); diff != "" {
		w.violation("the same input gave another decision: %s", diff)
	}
	shuffled := in
	shuffled.Snapshot.Replicas = append([]ag.Replica(nil), in.Snapshot.Replicas...)
	rand.New(rand.NewSource(int64(w.now))).Shuffle(len(shuffled.Snapshot.Replicas), func(i, j int) {
		shuffled.Snapshot.Replicas[i], shuffled.Snapshot.Replicas[j] = shuffled.Snapshot.Replicas[j], shuffled.Snapshot.Replicas[i]
	})
	if diff := cmp.Diff(d, decide(shuffled, w.knobs)); diff != "" {
		w.violation("the order of the replicas changed the decision: %s", diff)
	}
	var trip Input
	before, _ := json.Marshal(in)
	if err := json.Unmarshal(before, &trip); err != nil {
		w.violation("the input does not survive JSON: %v", err)
	} else if a, b := Explain(d), Explain(decide(trip, w.knobs)); a != b {
		w.violation("after a JSON round trip: %s", cmp.Diff(a, b))
	}
	if after, _ := json.Marshal(in); string(after) != string(before) {
		w.violation("the input was changed")
	}
	forgetful := in
	forgetful.Memory, forgetful.Watch = ag.Memory{}, ag.Watch{}
	w.promoteIsCovered(forgetful, decide(forgetful, w.knobs))
}

// promoteIsCovered: FAILOVER only behind a swap of the same pass that leaves nobody
// unfenced, to the holder that this swap names.
func (w *world) promoteIsCovered(in Input, d ag.Decision) {
	var swap *ag.Swap
	for _, a := range d.Actions {
		switch a := a.(type) {
		case ag.Swap:
			swap = &a
		case ag.Promote:
			if swap == nil || len(swap.Next.Unfenced) > 0 || swap.Next.Holder.Replica != a.Replica ||
				swap.Next.Operation == nil || swap.Next.Operation.Phase != ag.PhasePromoting || swap.Next.Epoch != a.Epoch {
				w.violation("FAILOVER on %s is not covered by the record", a.Replica)
			}
			if a.Force && in.Policy.External && swap.Next.Operation.Kind != ag.OperationForced {
				w.violation("FORCE on %s without anybody's word", a.Replica)
			}
		}
	}
}

// runFor lets the world and the controller run, and collects what was done.
func (w *world) runFor(d time.Duration, note func(string)) {
	end := w.now + d
	for w.now < end {
		w.step()
		for _, l := range w.pass() {
			note(clock(w.now) + " " + l)
		}
		if len(w.violations) > 0 {
			return
		}
	}
}

// takeBack: where numbers do not tell promotions apart, a primary takes a replica back that was
// PRIMARY beside it, and what that had written goes under.
func (w *world) takeBack(s *server) {
	for _, p := range w.servers {
		if w.flat && p.role == ag.RolePrimary && w.connected(p, s) && s.cfg.seq >= p.cfg.seq {
			s.cfg = p.cfg.clone()
		}
	}
}
