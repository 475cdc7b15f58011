package decide

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// The scenario language. Every file tells one story; `go test ./pkg/sql/decide -rewrite`
// rewrites what was done, and a person reads the difference.
//
//	ag replicas=3 [witness] [async] [k=N] [auto=false] [none] [nolease] [alone] [oldquorum] [resolves] [flat]
//	kill R [down=20s|forever]      the container ends and restarts
//	delete R [forever]             the pod vanishes; a new one comes after its end is proven
//	terminate R                    the pod gets a deletion timestamp
//	reboot R                       its node comes back with another boot ID
//	return R                       what was down for ever starts after all
//	freeze R / thaw R              sqlservr stands still, its manager runs
//	silence R / unsilence R        no packet in or out of its node
//	cut A B / join A B             one link; api and controller are names too
//	api down|up
//	sql R offline|reseat|failover|force|broken|left|deaf|k=N|db=SUSPECT|seq=1|drop=R
//	pvc R                          its volume is swapped for a blank one
//	fence R / unfence R
//	latch R                        SET (ROLE = SECONDARY) answers 41104 until both endpoints restart
//	refuse on|off                  every FAILOVER answers 41142
//	slow 20s                       how long a promotion takes
//	lease delete|old|foreign|keep|restore|uncounted
//	request failover [target=R] [expect=R] [seq=N] [id=x] [loss] [max=N]
//	policy allowloss=30s|maxlag=5s|reseed=true|preferred=R|paused=true|threshold=10s|hold=60s
//	controller restart|down|up|forget|direct|standby|acts
//	run 60s [quiet]
//	show | readiness | explain | memory | history
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Parallel()
		w := newWorld(3)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := w.command(t, d)
			for _, v := range w.violations {
				out += "VIOLATION " + v + "\n"
				t.Errorf("%s: %s: %s", path, d.Pos, v)
			}
			w.violations = nil
			if out == "" {
				return "ok\n"
			}
			return out
		})
	})
}

// first is the first argument without a value: the replica a command speaks of.
func word(d *datadriven.TestData, i int) string {
	n := 0
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			if n == i {
				return a.Key
			}
			n++
		}
	}
	return ""
}

func value(d *datadriven.TestData, key string) (string, bool) {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0], true
		}
	}
	return "", false
}

func has(d *datadriven.TestData, key string) bool {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return true
		}
	}
	return false
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	v, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("duration %q: %v", text, err)
	}
	return v
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s := w.find(word(d, 0))
	switch d.Cmd {
	case "ag":
		*w = *w.fresh(t, d)
		return w.table()
	case "kill":
		down := 20 * time.Second
		if v, ok := value(d, "down"); ok && v == "forever" {
			down = -1
		} else if ok {
			down = duration(t, v)
		}
		w.kill(s, down)
	case "delete":
		w.kill(s, 20*time.Second)
		s.gone, s.terminated, s.terminating, s.label = true, "", false, ag.RoleUnknown
		if has(d, "forever") {
			s.downUntil = -1
		}
	case "return":
		s.downUntil = w.now
	case "terminate":
		s.terminating = true
	case "reboot":
		s.boot++
		for _, o := range append([]string{"api", "controller"}, w.names()...) {
			w.cuts[link(s.name, o)] = false
		}
		w.kill(s, 15*time.Second)
		s.terminated = ""
	case "freeze", "thaw":
		s.frozen = d.Cmd == "freeze"
	case "silence", "unsilence":
		for _, o := range append([]string{"api", "controller"}, w.names()...) {
			w.cuts[link(s.name, o)] = d.Cmd == "silence"
		}
	case "cut", "join":
		w.cuts[link(word(d, 0), word(d, 1))] = d.Cmd == "cut"
	case "api":
		w.apiOff = word(d, 0) == "down"
	case "sql":
		w.byHand(t, s, d)
	case "pvc":
		s.pvc += "-blank"
		s.cfg, s.log = config{}, nil
		s.disk = s.mgr.Persisted
		s.disk.Epoch, s.disk.Rule, s.disk.Seal = 0, 0, nil
	case "fence", "unfence":
		s.fenced = d.Cmd == "fence"
	case "latch":
		s.latched = true
	case "refuse":
		w.refuseAll = word(d, 0) == "on"
	case "slow":
		w.slow = duration(t, word(d, 0))
	case "writes":
		w.writes = word(d, 0) == "on"
	case "labels":
		w.labelsOff = word(d, 0) == "denied"
	case "lease":
		w.spoil(word(d, 0))
	case "request":
		w.order(t, d)
	case "policy":
		w.change(t, d)
	case "controller":
		w.controller(word(d, 0))
	case "run":
		return w.runText(duration(t, word(d, 0)), has(d, "quiet"))
	case "show":
		return w.table()
	case "readiness", "explain":
		in, ok := w.input()
		if !ok {
			return "the controller cannot read the Lease\n"
		}
		if d.Cmd == "readiness" {
			return ExplainReadiness(decide(in, w.knobs))
		}
		return Explain(decide(in, w.knobs))
	case "history":
		return w.history()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return ""
}

func (w *world) names() []string {
	var out []string
	for _, s := range w.servers {
		out = append(out, s.name)
	}
	return out
}

func (w *world) fresh(t *testing.T, d *datadriven.TestData) *world {
	t.Helper()
	n := 3
	if v, ok := value(d, "replicas"); ok {
		n, _ = strconv.Atoi(v)
	}
	var opts []func(*world)
	if has(d, "witness") {
		opts = append(opts, withWitness)
	}
	if has(d, "async") {
		opts = append(opts, withAsync)
	}
	opts = append(opts, func(w *world) {
		if v, ok := value(d, "k"); ok {
			k, _ := strconv.Atoi(v)
			w.policy.K = int32(k)
		}
		w.policy.External = !has(d, "none")
		w.noLease = has(d, "nolease")
		w.promoteAlone = has(d, "alone")
		w.oldQuorum = has(d, "oldquorum")
		w.resolvesAlone = has(d, "resolves")
		w.flat = has(d, "flat")
		if v, ok := value(d, "auto"); ok {
			w.policy.AutoFailover = v == "true"
		}
	})
	return newWorld(n, opts...)
}

func (w *world) byHand(t *testing.T, s *server, d *datadriven.TestData) {
	t.Helper()
	switch what := word(d, 1); what {
	case "offline":
		w.offline(s)
	case "reseat":
		s.role = ag.RoleSecondary
	case "failover", "force":
		if what == "force" {
			for _, o := range w.servers {
				o.suspend = o != s
			}
		}
		s.leaseEnd = w.now + w.policy.Timing.L
		s.role, s.becoming = ag.RoleResolving, w.now+beat
	case "primary":
		s.role, s.leaseEnd = ag.RolePrimary, w.now+w.policy.Timing.L
	case "broken":
		s.broken = true
	case "left":
		s.leftBehind = true
	case "deaf":
		s.deaf = true
	case "resume":
		for _, o := range w.servers {
			o.suspend = false
		}
	}
	if v, ok := value(d, "k"); ok {
		k, _ := strconv.Atoi(v)
		s.cfg.k = int32(k)
	}
	if v, ok := value(d, "db"); ok {
		s.dbState = ag.DatabaseState(v)
	}
	if v, ok := value(d, "drop"); ok {
		s.cfg.synced = less(s.cfg.synced, v)
		s.cfg.seq++
	}
	if v, ok := value(d, "seq"); ok {
		n, _ := strconv.ParseInt(v, 10, 64)
		s.cfg.seq += n
	}
}

// spoil does to the Lease what a hand or a restored etcd does.
func (w *world) spoil(how string) {
	switch how {
	case "delete":
		w.lease = ag.Authority{}
	case "old":
		w.lease.Epoch--
		w.lease.Rule.Number--
	case "foreign":
		w.lease.AGUID = "another"
	case "keep":
		w.kept = w.lease.Clone()
		return
	case "restore":
		w.lease = w.kept.Clone()
	case "uncounted":
		w.lease.Swaps = 0 // written by a release that did not count
	}
	w.bump()
}

func (w *world) order(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	q := &ag.Request{ID: "r1", Kind: word(d, 0), By: "alice"}
	if v, ok := value(d, "id"); ok {
		q.ID = v
	}
	q.Target, _ = value(d, "target")
	q.ExpectedPrimary, _ = value(d, "expect")
	q.AllowDataLoss = has(d, "loss")
	if v, ok := value(d, "max"); ok {
		q.MaxLossSeconds, _ = strconv.Atoi(v)
	}
	if v, ok := value(d, "seq"); ok {
		q.ExpectedSequence, _ = strconv.ParseInt(v, 10, 64)
	}
	w.request = q
}

func (w *world) change(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	for _, a := range d.CmdArgs {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		switch a.Key {
		case "allowloss":
			w.policy.AllowDataLoss, w.policy.ForceAfter = true, duration(t, v)
		case "maxlag":
			w.policy.MaxLag = duration(t, v)
		case "preferred":
			w.policy.Preferred = v
		case "paused":
			w.policy.Paused = v == "true"
		case "threshold":
			w.policy.Threshold = duration(t, v)
		case "hold":
			w.policy.FailsafeHold = duration(t, v)
		case "stability":
			w.policy.Stability = duration(t, v)
		case "reseed":
			w.policy.AllowReseed = v == "true"
		case "required":
			w.policy.Required = v == "true"
		default:
			t.Fatalf("unknown policy %s", a.Key)
		}
	}
}

func (w *world) controller(what string) {
	switch what {
	case "restart":
		w.watch, w.ctlSince = ag.Watch{}, w.now
	case "forget":
		w.watch, w.ctlSince, w.memory = ag.Watch{}, w.now, ag.Memory{}
	case "down", "up":
		w.ctlUp = what == "up"
		w.watch, w.ctlSince = ag.Watch{}, w.now
	case "standby", "acts":
		// The acting one is gone; another one has read the Lease since it was last renewed.
		w.standby, w.observer = what == "standby", "controller/2"
	case "direct":
		w.observer = "direct/laptop"
		w.watch, w.ctlSince = ag.Watch{}, w.now
	case "incluster":
		w.observer = "controller/1"
		w.watch, w.ctlSince = ag.Watch{}, w.now
	}
}

// runText runs and tells what was done; findings, blocks and waits are told when they change.
func (w *world) runText(d time.Duration, quiet bool) string {
	var b strings.Builder
	end := w.now + d
	for w.now < end {
		w.step()
		in, ok := w.input()
		if ok {
			said := ""
			for _, x := range decide(in, w.knobs).Blocks {
				said += clock(w.now) + " blocked: " + blockText(x) + "\n"
			}
			if key := stripTime(said); key != w.lastActed && said != "" && !quiet {
				b.WriteString(said)
				w.lastActed = key
			} else if said == "" {
				w.lastActed = ""
			}
		}
		before := w.memory.LastResult
		for _, l := range w.pass() {
			if !quiet && !strings.HasPrefix(l, "seal ") {
				b.WriteString(clock(w.now) + " " + l + "\n")
			}
		}
		if r := w.memory.LastResult; r != nil && (before == nil || *before != *r) {
			fmt.Fprintf(&b, "%s request %s: %s%s\n", clock(w.now), r.ID, r.Result, orDash(r.Message))
		}
		if len(w.violations) > 0 {
			break
		}
	}
	b.WriteString(w.line())
	return b.String()
}

func stripTime(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if len(l) > 6 {
			lines[i] = l[6:]
		}
	}
	return strings.Join(lines, "\n")
}

func blockText(x ag.Block) string {
	s := x.Reason
	if x.Rule != "" {
		s += " " + string(x.Rule)
	}
	if x.Replica != "" {
		s += " " + x.Replica
	}
	return s + ": " + x.Message
}

func orDash(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// line is the world in one line.
func (w *world) line() string {
	var parts []string
	for _, s := range w.servers {
		role := string(s.role)
		switch {
		case s.gone:
			role = "no pod"
		case !s.up:
			role = "down"
		case s.role == ag.RoleUnknown:
			role = "?"
		}
		parts = append(parts, s.name+" "+role)
	}
	writable := "not writable"
	for _, s := range w.servers {
		if w.alive(s) && s.role == ag.RolePrimary && len(s.waiting) == 0 {
			writable = "writable"
		}
	}
	op := ""
	if o := w.lease.Operation; o != nil {
		op = fmt.Sprintf("; %s %s", o.Kind, o.Phase)
	}
	return fmt.Sprintf("%s %s: %s%s\n", clock(w.now), writable, strings.Join(parts, ", "), op)
}

func (w *world) table() string {
	var b strings.Builder
	for _, s := range w.servers {
		fmt.Fprintf(&b, "%s %s seq=%d:%d synced=[%s] label=%s\n", s.name, orText(string(s.role), "-"), s.cfg.seq>>32, s.cfg.seq&0xffffffff,
			strings.Join(s.cfg.synced, " "), orText(strings.ToLower(string(s.label)), "-"))
	}
	a := w.lease
	fmt.Fprintf(&b, "lease: holder=%s epoch=%d k=%d of [%s]", orText(a.Holder.Replica, "-"), a.Epoch, a.Rule.K, strings.Join(a.Rule.Names(), " "))
	if a.LastPrimary != "" {
		fmt.Fprintf(&b, " last=%s", a.LastPrimary)
	}
	if len(a.MaybePrimary) > 0 {
		fmt.Fprintf(&b, " maybe=[%s]", strings.Join(a.MaybePrimary, " "))
	}
	if len(a.Stale) > 0 {
		fmt.Fprintf(&b, " stale=[%s]", strings.Join(a.Stale, " "))
	}
	if len(a.Unfenced) > 0 {
		fmt.Fprintf(&b, " unfenced=%d", len(a.Unfenced))
	}
	if a.Operation != nil {
		fmt.Fprintf(&b, " op=%s/%s", a.Operation.Kind, a.Operation.Phase)
	}
	return b.String() + "\n"
}

func (w *world) history() string {
	var b strings.Builder
	for _, h := range w.memory.History {
		fmt.Fprintf(&b, "%s %s -> %s: %s (epoch %d): %s\n", h.Kind, orText(h.From, "-"), h.To, h.Result, h.Epoch, h.Cause)
	}
	return b.String()
}
