package ag

import "slices"

// Promises are the replicas that have answered OFFLINE in one fencing (R11). They count in the
// epoch in which they were given: a new grant begins with none.
type Promises struct {
	Epoch    int64    `json:"epoch"`
	Replicas []string `json:"replicas"`
}

// Has tells whether this replica has answered in that epoch.
func (p Promises) Has(replica string, epoch int64) bool {
	return p.Epoch == epoch && slices.Contains(p.Replicas, replica)
}

// Answered lists the replicas of a Promise that have answered, by what came of it.
func (a Promise) Answered(err *Error) []string {
	switch {
	case err == nil:
		return a.Replicas
	case len(err.Failed) == 0:
		return nil
	}
	return except(a.Replicas, err.Failed)
}

// Promised is the swap with the promises that were really given: of those that the Promise
// before it in the same pass asked for, only the ones that were answered.
func (a Swap) Promised(asked, answered []string) Swap {
	op := a.Next.Operation
	if op == nil || len(asked) == len(answered) {
		return a
	}
	a.Next = a.Next.Clone()
	a.Next.Operation.Promises.Replicas = except(op.Promises.Replicas, except(asked, answered))
	return a
}

func except(list, without []string) []string {
	var out []string
	for _, x := range list {
		if !slices.Contains(without, x) {
			out = append(out, x)
		}
	}
	return out
}
