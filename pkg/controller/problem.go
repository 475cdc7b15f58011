package controller

import (
	"slices"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
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

// problemText joins the problems' messages, each once behind the names of the replicas
// that it is about, shortened to what a condition can carry and a person will read.
func problemText(problems []Problem) string {
	const most = 1024
	var messages []string
	about := map[string][]string{}
	for _, p := range problems {
		if !slices.Contains(messages, p.Message) {
			messages = append(messages, p.Message)
		}
		if p.Replica != "" && !slices.Contains(about[p.Message], p.Replica) {
			about[p.Message] = append(about[p.Message], p.Replica)
		}
	}
	var parts []string
	for _, m := range messages {
		if names := reasons.Names(about[m]); names != "" {
			m = names + ": " + m
		}
		parts = append(parts, m)
	}
	s := strings.Join(parts, "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " …"
	}
	return s
}
