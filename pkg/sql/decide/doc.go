// Package decide is the decision of the availability group's cluster manager: a pure
// function of what was seen, what is recorded and what was asked for. It reads no
// clock, draws no random value, ranges over no map and imports only the vocabulary.
//
//	Decide(Input) ag.Decision     what to do now, or why not
//	Record(memory, outcomes, now) what must be remembered of what was done
//	Explain(decision)             the same as stable text
//
// The rules R1 to R22 are those of docs/concepts/safety. A decision is a chain of rules in a
// fixed order (rules.go); the first that claims the pass has the disruptive slot, and
// maintenance is appended always.
//
// An operation in the Lease moves forward only:
//
//	switchover, handover:  demoting ──► promoting ──► publishing ──► (none)
//	                          │  ▲          │
//	     target behind (R20)  └──┘          └─► fencing (R21: a failover away from the target)
//	failover, forced:      fencing ──► promoting ──► publishing ──► (none)
//	                          ▲ │           │
//	     another one wins R10 └─┘           └─► fencing (41142, death, deadline)
package decide
