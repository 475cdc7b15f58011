package check

import "slices"

// Status of one row.
type Status string

// A row is in order, could become a trouble, or is one.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Row is one thing that was looked at.
type Row struct {
	Group   string `json:"group"`
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Hint says what to do; empty when there is nothing to do.
	Hint string `json:"hint"`
	// Code for `explain`; empty when the row is in order.
	Code string `json:"code"`
}

// Report is the machine-readable result.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Status is the worst of the rows.
	Status   Status `json:"status"`
	Rows     []Row  `json:"rows"`
	Failed   int    `json:"failed"`
	Warnings int    `json:"warnings"`
	ExitCode int    `json:"exitCode"`
}

func summarize(rows []Row) Report {
	r := Report{APIVersion: "cli.kubectl-mssql.io/v1", Kind: "CheckReport", Status: OK, Rows: slices.Clone(rows)}
	if r.Rows == nil {
		r.Rows = []Row{}
	}
	for _, row := range rows {
		switch row.Status {
		case Fail:
			r.Failed++
		case Warn:
			r.Warnings++
		case OK:
		}
	}
	switch {
	case r.Failed > 0:
		r.Status = Fail
	case r.Warnings > 0:
		r.Status = Warn
	}
	return r
}

// section collects the rows of one group.
type section struct {
	group string
	rows  []Row
}

func (s *section) ok(name, message string) {
	s.rows = append(s.rows, Row{Group: s.group, Name: name, Status: OK, Message: message})
}

func (s *section) warn(code, name, message, hint string) {
	s.rows = append(s.rows, Row{Group: s.group, Name: name, Status: Warn, Message: message, Hint: hint, Code: code})
}

func (s *section) fail(code, name, message, hint string) {
	s.rows = append(s.rows, Row{Group: s.group, Name: name, Status: Fail, Message: message, Hint: hint, Code: code})
}

// unseen is a row about something that could not be looked at: never ok, never a failure.
func (s *section) unseen(name string, err error) {
	s.warn(CodeUnseen, name, "not seen: "+err.Error(), "")
}
