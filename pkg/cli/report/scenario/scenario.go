// Package scenario turns what a report has captured into a test of the rules, and back:
// a file in the form of the scenarios of pkg/sql/decide, whose command "input" holds the
// captured snapshot, record, policy and memory as JSON, and whose expected output is
// what was decided. Incident → regression test.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
)

// divider between input and output, as in every scenario file. The JSON holds blank
// lines nowhere, so that nothing else needs to be escaped.
const divider = "----\n"

// Captured is everything that one decision rested on.
type Captured struct {
	// Title says what happened, for people; each line becomes a comment.
	Title string
	Input decide.Input
}

// document is the input as the file holds it: names that do not change with the code,
// and nothing that only tests set.
type document struct {
	Now       time.Time    `json:"now"`
	Clock     ag.Clock     `json:"clock"`
	Observer  string       `json:"observer"`
	Authority ag.Authority `json:"authority"`
	Snapshot  ag.Snapshot  `json:"snapshot"`
	Policy    ag.Policy    `json:"policy"`
	Memory    ag.Memory    `json:"memory"`
	Watch     ag.Watch     `json:"watch"`
	Request   *ag.Request  `json:"request,omitempty"`
}

func toDocument(in decide.Input) document {
	return document{in.Now, in.Clock, in.Observer, in.Authority, in.Snapshot, in.Policy, in.Memory, in.Watch, in.Request}
}

func (d document) input() decide.Input {
	return decide.Input{Now: d.Now, Clock: d.Clock, Observer: d.Observer, Authority: d.Authority, Snapshot: d.Snapshot,
		Policy: d.Policy, Memory: d.Memory, Watch: d.Watch, Request: d.Request}
}

// Format writes the file: the input, and for it what Decide says now.
func Format(c Captured) ([]byte, error) {
	var b bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSpace(c.Title), "\n") {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	text, err := json.MarshalIndent(toDocument(c.Input), "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the scenario: %w", err)
	}
	b.WriteString("input\n")
	b.Write(text)
	b.WriteString("\n" + divider)
	b.WriteString(Decided(c.Input))
	return b.Bytes(), nil
}

// Decided is the expected output: the decision, and whether each replica would be
// promoted. It ends with a line that is not blank.
func Decided(in decide.Input) string {
	d := decide.Decide(in)
	var b strings.Builder
	for line := range strings.SplitSeq(decide.Explain(d)+decide.ExplainReadiness(d), "\n") {
		switch { // what a server said may hold blank lines and dividers, which end an output
		case strings.TrimSpace(line) == "":
			continue
		case strings.HasPrefix(line, "----"):
			line = " " + line
		}
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// ParseInput reads what the command "input" holds. A field that this version does not
// know is an error: a scenario must not pass by being ignored.
func ParseInput(text string) (decide.Input, error) {
	var doc document
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return decide.Input{}, fmt.Errorf("read the captured input: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return decide.Input{}, fmt.Errorf("read the captured input: something stands behind it")
	}
	return doc.input(), nil
}

// Parse reads a whole file back.
func Parse(text []byte) (Captured, error) {
	var c Captured
	rest := string(text)
	for strings.HasPrefix(rest, "#") {
		line, after, _ := strings.Cut(rest, "\n")
		c.Title += strings.TrimSpace(strings.TrimPrefix(line, "#")) + "\n"
		rest = after
	}
	c.Title = strings.TrimSpace(c.Title)
	body, ok := strings.CutPrefix(rest, "input\n")
	if !ok {
		return c, fmt.Errorf("read the scenario: it does not begin with the command input")
	}
	input, _, ok := strings.Cut(body, "\n"+divider)
	if !ok {
		return c, fmt.Errorf("read the scenario: there is no line of four dashes")
	}
	var err error
	c.Input, err = ParseInput(input)
	return c, err
}
