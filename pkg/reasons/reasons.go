// Package reasons is the one source of what is said about trouble: a stable code, a
// sentence, how to look, what to do. `kubectl mssql explain` prints it, status and check
// name the codes, and docs/runbooks is generated from it.
//
// A new reason of a condition, an event or a check gets an [Entry] in the table of its
// subject (table_*.go) with the next free number of that table. A code never changes its
// meaning and is never used again.
package reasons

import (
	"slices"
	"strings"
)

// Area of a code: its first digit.
type Area int

const (
	AreaCalm        Area = 0 // nothing is wrong
	AreaEnvironment Area = 1 // the spec, the cluster around it
	AreaFailover    Area = 2 // who may write and who may be promoted
	AreaReplica     Area = 3 // a replica, its copies of databases
	AreaCheck       Area = 5 // what `check` looks at: 50 before an installation, 51 the installation, 52 a group
	AreaPlugin      Area = 6 // the plugin itself
	AreaRule        Area = 9 // the safety rules R1–R22; MSSQL9012 is R12
)

// Entry explains one thing that a person can be told.
type Entry struct {
	// Code is MSSQL and four digits.
	Code string `json:"code"`
	// Name is the reason of the condition or event, the rule's number, or the check's name.
	Name string `json:"name"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Look are sentences or commands that show more; Do what ends it. NAME is the
	// availability group or instance, REPLICA one of its replicas.
	Look []string `json:"look"`
	Do   []string `json:"do"`
}

// Area of the entry.
func (e Entry) Area() Area { return Area(e.Code[len("MSSQL")] - '0') }

// All lists every entry by code.
func All() []Entry {
	all := slices.Concat(calm(), environment(), failover(), replicas(), checks(), rules(), plugin())
	for i := range all {
		if all[i].Look == nil {
			all[i].Look = []string{}
		}
		if all[i].Do == nil {
			all[i].Do = []string{}
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(a.Code, b.Code) })
	return all
}

// Find gives the entry of a code, its number, a reason or a rule, in any case of letters:
// "MSSQL2001", "2001", "NoSafeCandidate" and "r12" are all found.
func Find(what string) (Entry, bool) {
	what = strings.TrimSpace(what)
	for _, e := range All() {
		if strings.EqualFold(e.Code, what) || strings.EqualFold(e.Name, what) || strings.TrimPrefix(e.Code, "MSSQL") == what {
			return e, true
		}
	}
	return Entry{}, false
}

// Code of a reason or rule; empty when there is none.
func Code(name string) string {
	e, ok := Find(name)
	if !ok {
		return ""
	}
	return e.Code
}

// CodeOr is the code of the first of these names that has one.
func CodeOr(names ...string) string {
	for _, n := range names {
		if n == "" {
			continue
		}
		if c := Code(n); c != "" {
			return c
		}
	}
	return ""
}

// Near lists codes and names that hold the text, for "did you mean".
func Near(what string) []string {
	what = strings.ToLower(strings.TrimSpace(what))
	var out []string
	for _, e := range All() {
		if len(what) > 2 && (strings.Contains(strings.ToLower(e.Name), what) || strings.Contains(strings.ToLower(e.Code), what)) {
			out = append(out, e.Code+" "+e.Name)
		}
	}
	return out
}
