package controller

import (
	"slices"
	"strings"
)

// Problem is something that a person or the cluster must put right. The message
// says what is wrong and what to do.
type Problem struct {
	// Reason is one of v1alpha1's constants.
	Reason string
	// Replica that it is about; empty when it concerns all.
	Replica string
	Message string
}

// text joins the problems' messages, each replica's behind its name, shortened to
// what a condition can carry and a person will read.
func problemText(problems []Problem) string {
	const most = 1024
	var parts []string
	for _, p := range problems {
		m := p.Message
		if p.Replica != "" {
			m = p.Replica + ": " + m
		}
		if !slices.Contains(parts, m) {
			parts = append(parts, m)
		}
	}
	s := strings.Join(parts, "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " …"
	}
	return s
}
