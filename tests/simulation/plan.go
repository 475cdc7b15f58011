//go:build linux

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// plan is all that a seed decides beforehand. What it decides later follows from the plan and the seed.
type plan struct {
	seed      uint64
	topology  topology
	readings  engine.Readings
	timings   engine.Timings
	colocated bool
	hold      int32
	threshold int32
	faults    []fault
	kept      []int    // places of the faults in the seed's whole schedule, when it was shortened
	without   []string // rules that are switched off
	closely   bool     // statements and labels are looked at one by one: closely.go
	// gap is the longest pause of acknowledgements that a single fault may cause (I5); 0 is not looked at.
	gap time.Duration
	// heal is when the faults end, end when the run ends, limit when it must be writable (I3).
	heal, end, limit time.Duration
}

// fault is one disturbance. With an aim it strikes delay after the nth event of that kind since at.
type fault struct {
	at     time.Duration
	what   string
	who    string
	other  string
	length time.Duration
	aim    string
	nth    int
	delay  time.Duration
}

// String is one line of a schedule.
func (f fault) String() string {
	s := fmt.Sprintf("%6.1fs %s", f.at.Seconds(), f.what)
	if f.who != "" {
		s += " " + f.who
	}
	if f.other != "" {
		s += " " + f.other
	}
	if f.length > 0 {
		s += fmt.Sprintf(" for %s", f.length.Round(10*time.Millisecond))
	}
	if f.aim != "" {
		s += fmt.Sprintf(", %s after %q no. %d", f.delay.Round(time.Microsecond), f.aim, f.nth)
	}
	return s
}

const (
	quiet   = 60 * time.Second // before the first fault
	healAt  = 450 * time.Second
	endAt   = 600 * time.Second
	limitAt = healAt + 300*time.Second
)

// resource changes the custom resource as the plan says.
func (p plan) resource(g *v1alpha1.SQLServerAvailabilityGroup) {
	g.Spec.AutomaticFailover.FailsafeHoldOffSeconds = p.hold
	g.Spec.AutomaticFailover.FailoverThresholdSeconds = p.threshold
}

// newPlan draws a plan from a seed.
func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0x5eed)) //nolint:gosec // a schedule, no secret
	all := topologies()
	p := plan{seed: seed, topology: all[seed%uint64(len(all))], heal: healAt, end: endAt, limit: limitAt, hold: 300, threshold: 30}
	if seed%16 == 15 {
		return singleFault(r, p)
	}
	p.colocated = r.IntN(3) == 0
	if r.IntN(2) == 0 {
		p.hold, p.threshold = 40, 10
	}
	p.readings = drawReadings(r)
	p.timings = engine.DefaultTimings()
	if r.IntN(4) == 0 { // slow promotions
		p.timings.PromotionMin, p.timings.PromotionMax = 3*time.Second, 12*time.Second
		p.timings.Recovery = time.Duration(r.IntN(13)) * time.Second
	}
	p.faults = drawFaults(r, p)
	if seed > plainSeeds {
		p.faults = append(p.faults, drawOthers(rand.New(rand.NewPCG(seed, 0x07e5)), p)...) //nolint:gosec // a schedule, no secret
	}
	if seed > seedsBeforeSwaps {
		p.faults = append(p.faults, drawSwaps(rand.New(rand.NewPCG(seed, 0x5a9)), p)...) //nolint:gosec // a schedule, no secret
	}
	return p
}

// plainSeeds is the last seed without the faults of drawOthers, which came later: what a seed
// has once shown it shows for good.
const plainSeeds = 10_000

// seedsBeforeSwaps is the last seed in which every volume stays with its replica.
const seedsBeforeSwaps = 12_000

// drawSwaps exchanges the volumes of two replicas for a while, once or twice.
func drawSwaps(r *rand.Rand, p plan) []fault {
	n := len(p.topology.modes)
	if n < 2 {
		return nil
	}
	var faults []fault
	for range 1 + r.IntN(2) {
		a := r.IntN(n)
		b := (a + 1 + r.IntN(n-1)) % n
		faults = append(faults, fault{
			at: quiet + time.Duration(r.Int64N(int64(p.heal-quiet))), what: "swap-volumes",
			who: fmt.Sprintf("node:%d", a), other: fmt.Sprintf("node:%d", b),
			length: 10*time.Second + time.Duration(r.Int64N(int64(150*time.Second))),
		})
	}
	return faults
}

// drawOthers adds what is done to pods, volumes and the custom resource.
func drawOthers(r *rand.Rand, p plan) []fault {
	n := len(p.topology.modes)
	var faults []fault
	for at := quiet + time.Duration(r.Int64N(int64(30*time.Second))); at < p.heal-30*time.Second; at += 20*time.Second + time.Duration(r.Int64N(int64(160*time.Second))) {
		f := fault{at: at, what: "delete-pod"}
		switch k := r.IntN(10); {
		case k < 5:
			f.who = "primary"
		case k < 7:
			f.who = fmt.Sprintf("node:%d", r.IntN(n))
		case k < 8 && n > 1:
			f.what, f.who = "hand-force", fmt.Sprintf("secondary:%d", r.IntN(n-1))
		case k < 9 && n > 1:
			f.what, f.who = "restore-volume", fmt.Sprintf("node:%d", r.IntN(n))
		default:
			f.what = "recreate"
		}
		faults = append(faults, f)
	}
	return faults
}

// drawReadings chooses among the readings of facts that nobody has confirmed (FG 11).
func drawReadings(r *rand.Rand) engine.Readings {
	coin := func() bool { return r.IntN(2) == 0 }
	var x engine.Readings
	if coin() {
		return x
	}
	if coin() {
		x.Planned = engine.PlannedSticky
	}
	if coin() {
		x.JoinRole = engine.JoinResolving
	}
	x.SecondaryResolvesOnPrimaryLoss = coin()
	x.AllReplicaRowsOnSecondary = coin()
	x.LeaseUnlimitedUntilRenewed = coin()
	x.ResolvingDatabasesRestoring = coin()
	if coin() {
		x.Latch41104 = 20 * time.Second
	}
	seldom := func() bool { return r.IntN(6) == 0 }
	x.LeaseByTimer, x.LeaseWallClock = seldom(), seldom()
	x.TwoReplicasNeedMajority, x.ThreeReplicasCommitAlone, x.ConfigurationJudgedByOldQuorum = seldom(), seldom(), seldom()
	x.RenewalRevivesPrimary, x.FlatSequence, x.FailoverIgnoresSyncMark = seldom(), seldom(), seldom()
	return x
}

// singleFault is a schedule for I5: one trouble of the control plane or of one path, and writes go on.
func singleFault(r *rand.Rand, p plan) plan {
	p.topology = topologies()[[]int{0, 3, 5, 7, 9}[r.IntN(5)]]
	p.timings = engine.DefaultTimings()
	p.heal = 300 * time.Second
	d := 5*time.Second + time.Duration(r.Int64N(int64(170*time.Second)))
	p.gap = 6 * time.Second
	f := fault{at: quiet + time.Duration(r.Int64N(int64(30*time.Second))), length: d}
	switch r.IntN(6) {
	case 0:
		f.what = "api-away"
	case 1:
		f.what, f.who = "cut-control", "primary"
	case 2:
		f.what, f.length = "kill-controller", 0
	case 3:
		f.what = "freeze-controller"
	case 4: // the secondary is waited for until its session ends
		f.what, f.who, f.other, p.gap = "cut-endpoint", "primary", "secondary:0", 14*time.Second
		if p.topology.k != nil {
			f.what, f.other = "cut-control", "" // all secondaries must answer there: the user wants it to wait
			p.gap = 6 * time.Second
		}
	default:
		f.what, f.who = "cut-control", "secondary:0"
	}
	p.faults = []fault{f}
	return p
}

// drawFaults makes a schedule.
func drawFaults(r *rand.Rand, p plan) []fault {
	n := len(p.topology.modes)
	var faults []fault
	add := func(f fault) { faults = append(faults, f) }
	span := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(r.Int64N(int64(hi-lo))) }
	anyNode := func() string {
		switch r.IntN(5) {
		case 0, 1:
			return "primary"
		case 2:
			return "holder"
		}
		return fmt.Sprintf("node:%d", r.IntN(n))
	}
	secondary := func() string { return fmt.Sprintf("secondary:%d", r.IntN(max(1, n-1))) }
	aims := []string{"grant", "grant", "rule", "phase", "phase failover/promoting", "role PRIMARY", "role RESOLVING", "record", "alter", "altered", "failover", "offline"}
	blank := false
	draw := func(at time.Duration) fault {
		f := fault{at: at}
		switch k := r.IntN(100); {
		case k < 14:
			f.what, f.who = "kill", anyNode()
		case k < 20:
			f.what, f.who, f.length = "poweroff", anyNode(), span(15*time.Second, 150*time.Second)
		case k < 30:
			f.what, f.who, f.length = "isolate", anyNode(), span(3*time.Second, 90*time.Second)
		case k < 37:
			f.what, f.who, f.length = "cut-control", anyNode(), span(5*time.Second, 120*time.Second)
		case k < 38:
			f.what, f.who, f.length = "cut-endpoints", anyNode(), span(2*time.Second, 60*time.Second)
		case k < 40:
			f.what, f.who, f.other, f.length = "sever", "primary", []string{"target", "secondary:0", "secondary:1"}[r.IntN(3)], span(2*time.Second, 90*time.Second)
		case k < 43:
			f.what, f.who, f.other, f.length = "cut-endpoint", anyNode(), secondary(), span(2*time.Second, 90*time.Second)
		case k < 48:
			f.what, f.who, f.other, f.length = "one-way", anyNode(), secondary(), span(2*time.Second, 60*time.Second)
		case k < 52:
			f.what, f.who, f.length = "freeze", anyNode(), span(time.Second, 45*time.Second)
		case k < 54:
			f.what, f.who, f.length = "stand", anyNode(), span(time.Second, 60*time.Second)
		case k < 57:
			f.what, f.who, f.length = "freeze-sql", anyNode(), span(time.Second, 60*time.Second)
		case k < 60:
			f.what, f.who, f.length = "freeze-manager", anyNode(), span(time.Second, 60*time.Second)
		case k < 65:
			f.what, f.length = "freeze-controller", span(time.Second, 60*time.Second)
		case k < 69:
			f.what = "kill-controller"
		case k < 74:
			f.what, f.length = "api-away", span(2*time.Second, 90*time.Second)
		case k < 80:
			f.what, f.length = "api-chaos", span(10*time.Second, 90*time.Second)
		case k < 86:
			f.what, f.who = "reset", anyNode()
		case k < 90:
			f.what, f.who = "move", secondary()
		case k < 92:
			f.what, f.who = "crash-at", anyNode()
			f.other = []string{"commit", "harden", "propose", "configure", "promote", "promoted"}[r.IntN(6)]
		case k < 93:
			f.what, f.who, f.length = "direct", secondary(), span(5*time.Second, 90*time.Second)
		case k < 94:
			f.what, f.who = "hand-offline", "primary"
		case k < 95:
			f.what, f.who = "hand-failover", "secondary:0"
		case k < 96:
			f.what, f.who, f.length = "clock-jump", anyNode(), span(-20*time.Second, 20*time.Second)
		case k < 97:
			f.what = []string{"lease-delete", "lease-restore"}[r.IntN(2)]
		case k < 98 && !blank && n > 2:
			blank = true
			f.what, f.who = "blank", secondary()
		default:
			f.what, f.who, f.length = "cut-controller", "leader", span(5*time.Second, 60*time.Second)
		}
		return f
	}
	at := quiet
	for at < p.heal-10*time.Second {
		add(draw(at))
		if r.IntN(2) == 0 { // an aimed one in its wake
			f := draw(at)
			f.aim, f.nth = aims[r.IntN(len(aims))], 1+r.IntN(3)
			if r.IntN(3) > 0 {
				f.delay = span(0, 60*time.Millisecond)
			} else {
				f.delay = span(0, 3*time.Second)
			}
			add(f)
		}
		if r.IntN(4) == 0 { // two at once
			add(draw(at + span(0, 4*time.Second)))
		}
		at += span(8*time.Second, 90*time.Second)
	}
	if n > 1 && r.IntN(4) == 0 {
		add(fault{at: span(quiet, p.heal), what: "never", who: anyNode()})
	}
	return faults
}
