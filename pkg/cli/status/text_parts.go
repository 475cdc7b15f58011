package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// operationWord is the title of a move.
func operationWord(kind string) string {
	switch kind {
	case "forced":
		return "Forced failover"
	case "handover":
		return "Hand-over"
	case "":
		return "Operation"
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}

func (t *text) operation() {
	op := t.d.Operation
	if op == nil {
		return
	}
	var head []string
	if op.Cause != "" {
		if t.o.wide() {
			head = append(head, "cause: "+op.Cause)
		} else {
			head = append(head, op.Cause)
		}
	} else {
		head = append(head, dash(op.From)+" -> "+dash(op.Target))
	}
	switch {
	case op.Started != nil && t.o.wide():
		head = append(head, "started "+op.Started.Format("15:04:05Z"))
	case op.Started != nil && op.Deadline != nil:
		head = append(head, "limit "+age(op.Deadline.Sub(*op.Started)))
	}
	head = append(head, "id "+op.ID)
	t.section(operationWord(op.Kind) + "  " + strings.Join(head, " · "))
	for _, s := range op.Steps {
		t.line("  %s %6s  %s", t.paint(iostreams.StyleGreen, "✔"), fmt.Sprintf("+%.0fs", s.After), s.What)
	}
	t.line("  %s %6s  %s", t.paint(iostreams.StyleBold, "▸"), "", t.paint(iostreams.StyleBold, op.Now))
	t.goesOn()
	for _, n := range op.Next {
		t.line("  %s %6s  %s", t.paint(iostreams.StyleDim, "·"), "", t.paint(iostreams.StyleDim, n))
	}
}

// seeding shows each database of the replicas that are being seeded.
func (t *text) seeding() {
	for _, s := range t.d.Seeding {
		head := fmt.Sprintf("Seeding  %s <- %s · %d of %d databases done", s.Replica, s.From, s.Done, s.Total)
		if s.Started != nil && t.o.wide() {
			head += " · started " + s.Started.Format("15:04:05Z")
		}
		t.section(head)
		bar := 20
		if !t.o.wide() {
			bar = 10
		}
		table := Table{
			Header: []string{"DATABASE", "STATE", "PROGRESS", "COPIED", "RATE", "LEFT", "TRY"},
			Right:  []string{"COPIED", "RATE", "LEFT", "TRY"}, Whole: []string{"PROGRESS", "COPIED", "RATE", "LEFT", "TRY"}, Width: t.o.Width,
			Paint: func(column, cell string, row int) string {
				if column == "STATE" && (cell == "retry" || cell == "failed") {
					return t.paint(iostreams.StyleYellow, cell)
				}
				return cell
			},
		}
		for _, x := range s.Databases {
			table.Rows = append(table.Rows, []string{
				x.Database, x.State, progress(x, bar), copied(x), rate(x), left(x), fmt.Sprint(max(1, x.Attempts)),
			})
		}
		t.b.WriteString(table.String())
	}
}

func progress(x SeedingStatus, width int) string {
	share := 0.0
	switch {
	case x.State == "done" || x.State == "catching up":
		share = 1
	case x.Transferred != nil && x.Size != nil && *x.Size > 0:
		share = min(1, float64(*x.Transferred)/float64(*x.Size))
	case x.State == "copying":
		return "?"
	}
	full := int(share * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full) + fmt.Sprintf(" %3.0f%%", share*100)
}

func copied(x SeedingStatus) string {
	if x.Transferred == nil || x.Size == nil {
		return "-"
	}
	return ofSize(*x.Transferred, *x.Size)
}

func rate(x SeedingStatus) string {
	if x.Rate == nil || *x.Rate == 0 {
		return "-"
	}
	return size(*x.Rate) + "/s"
}

func left(x SeedingStatus) string {
	if x.LeftSeconds == nil {
		return "-"
	}
	return age(time.Duration(*x.LeftSeconds * float64(time.Second)))
}

// refusals say why the operator stopped, or whom it looks at.
func (t *text) refusals() {
	d := t.d
	if len(d.Refusals) == 0 {
		return
	}
	switch {
	case api.Phase(d.Phase) == api.PhaseBlocked:
		head := "Why the operator stopped   " + d.BlockedReason
		if d.BlockedSince != nil && t.o.wide() {
			head += " since " + d.BlockedSince.Format("15:04:05Z")
		}
		t.section(strings.TrimRight(head, " "))
	case d.Operation == nil:
		t.section("Who may be promoted")
	default:
		return // the operation says what is going on
	}
	width := 0
	for _, r := range d.Replicas {
		width = max(width, len(r.Name))
	}
	for _, r := range d.Refusals {
		message := r.Message
		if message == "" {
			message = "could take over without data loss"
		}
		if r.Rule != "" && !strings.HasPrefix(message, r.Rule) {
			message = r.Rule + ": " + message
		}
		t.line("  %-*s  %s", width, orWord(r.Replica, "group"), message)
	}
	if k := d.CommitsWaitFor; k != nil && api.Phase(d.Phase) == api.PhaseBlocked {
		text := fmt.Sprintf("waited for %d secondar%s: acknowledged ones are on at least so many others", *k, plural(*k))
		if *k == 0 {
			text = "waited for 0 secondaries: acknowledged ones may be missing"
		}
		t.line("  %-*s  %s", width, "commits", text)
	}
}

func (t *text) replicas() {
	t.section("Replicas")
	if t.o.narrow() {
		for _, r := range t.d.Replicas {
			t.line("  %s", t.paint(iostreams.StyleBold, r.Name))
			t.line("    role         %s (%s)", r.Role, r.Mode)
			t.line("    state        %s", dash(r.State))
			t.line("    if promoted  %s", r.IfPromoted)
			t.line("    send queue   %s", number(r.SendQueue, r, size))
			t.line("    redo queue   %s", number(r.RedoQueue, r, size))
			t.line("    lag          %s", number(r.Lag, r, seconds))
			t.line("    ready        %s", yesNo(r.Ready))
			t.line("    node         %s", dash(r.Node))
		}
		return
	}
	table := Table{
		Header: []string{"NAME", "ROLE", "MODE", "STATE", "IF PROMOTED", "SEND Q", "REDO Q", "LAG", "READY", "AGE", "NODE"},
		Right:  []string{"SEND Q", "REDO Q", "LAG"}, Whole: []string{"NAME", "ROLE", "MODE", "IF PROMOTED", "SEND Q", "REDO Q", "LAG"}, Width: t.o.Width,
		Paint: t.replicaStyle,
	}
	for _, r := range t.d.Replicas {
		since := "?"
		if r.Since != nil {
			since = age(t.o.Now.Sub(*r.Since))
		}
		table.Rows = append(table.Rows, []string{
			r.Name, r.Role, r.Mode, dash(r.State), r.IfPromoted, number(r.SendQueue, r, size), number(r.RedoQueue, r, size), number(r.Lag, r, seconds),
			yesNo(r.Ready), since, dash(r.Node),
		})
	}
	t.b.WriteString(table.keep(func(col string) bool {
		return t.o.wide() || (col != "SEND Q" && col != "READY" && col != "AGE")
	}).String())
	t.old()
}

// old warns of numbers that were not read just now.
func (t *text) old() {
	for _, r := range t.d.Replicas {
		if r.MeasuredAgo != nil && *r.MeasuredAgo > 10 {
			t.line("  queues and lag are %s old", age(time.Duration(*r.MeasuredAgo*float64(time.Second))))
			return
		}
	}
}

func (t *text) replicaStyle(col, cell string, row int) string {
	switch {
	case col == "ROLE" && (cell == "PRIMARY" || cell == "RESOLVING"):
		return t.paint(iostreams.StyleBold, cell)
	case col == "IF PROMOTED" && cell == "no loss":
		return t.paint(iostreams.StyleGreen, cell)
	case col == "IF PROMOTED" && (strings.HasPrefix(cell, "loses") || cell == "may lose"):
		return t.paint(iostreams.StyleRed, cell)
	case col == "IF PROMOTED" && cell == "never", cell == "?", col == "STATE" && t.d.Replicas[row].Fenced:
		return t.paint(iostreams.StyleYellow, cell)
	case col == "MODE" || col == "AGE" || col == "NODE" || cell == "-":
		return t.paint(iostreams.StyleDim, cell)
	}
	return cell
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// number prints a value: a dash where there is none to measure, a question mark where it
// was not measured.
func number(v *int64, r ReplicaRow, print func(int64) string) string {
	if v != nil {
		return print(*v)
	}
	if r.NotApplicable {
		return "-"
	}
	return "?"
}

func (t *text) databases() {
	d := t.d
	switch {
	case d.DatabasesTotal == 0:
		t.section("Databases  none in the group")
		return
	case d.Primary == "":
		t.section(fmt.Sprintf("Databases  %d, not compared while no primary is known", d.DatabasesTotal))
		return
	}
	where, hint := "", ""
	if d.DatabasesInStep == d.DatabasesTotal {
		if t.o.wide() {
			where = " on every replica"
		}
		if t.o.Verbose == 0 {
			hint = "   (-v lists them)"
		}
	}
	t.section(fmt.Sprintf("Databases  %d of %d synchronized%s%s", d.DatabasesInStep, d.DatabasesTotal, where, hint))
	if t.o.Verbose > 0 {
		t.b.WriteString(t.databaseTable().String())
		return
	}
	t.behind()
}

// behind names the copies that are not in step; a replica without any in step in one line.
func (t *text) behind() {
	d := t.d
	told := map[string]bool{}
	for _, s := range d.Seeding {
		told[s.Replica] = true // the seeding table names them
	}
	all, bad := map[string]int{}, map[string]int{}
	for _, db := range d.Databases {
		all[db.Replica]++
		if !db.InStep {
			bad[db.Replica]++
		}
	}
	lines, more := 0, 0
	for _, db := range d.Databases {
		if db.InStep || told[db.Replica] {
			continue
		}
		what := db.Name
		if all[db.Replica] == bad[db.Replica] && all[db.Replica] > 1 {
			what, told[db.Replica] = "every database", true
		}
		if lines++; lines > 20 {
			more++
			continue
		}
		note := ""
		if db.Message != "" {
			note = ", " + db.Message
		}
		t.line("  %s on %s: %s%s", what, db.Replica, orWord(strings.ToLower(orWord(db.Sync, db.State)), "state unknown"), note)
	}
	if more > 0 {
		t.line("  and %d more (-v lists them)", more)
	}
}

func (t *text) databaseTable() Table {
	table := Table{
		Header: []string{"DATABASE", "REPLICA", "SYNCHRONIZATION", "STATE", "SEND Q", "REDO Q", "LAG"},
		Right:  []string{"SEND Q", "REDO Q", "LAG"}, Whole: []string{"REPLICA"}, Width: t.o.Width,
		Paint: func(col, cell string, row int) string {
			if col == "SYNCHRONIZATION" && !t.d.Databases[row].InStep {
				return t.paint(iostreams.StyleYellow, cell)
			}
			return cell
		},
	}
	primary := ReplicaRow{NotApplicable: true}
	for _, db := range t.d.Databases {
		r := ReplicaRow{}
		if db.Replica == t.d.Primary {
			r = primary
		}
		sync := dash(strings.ToLower(db.Sync))
		if db.Message != "" {
			sync += ", " + db.Message
		}
		table.Rows = append(table.Rows, []string{
			db.Name, db.Replica, sync, dash(strings.ToLower(db.State)), number(db.SendQueue, r, size), number(db.RedoQueue, r, size), number(db.Lag, r, seconds),
		})
	}
	return table
}

// details are those of -v and -vv.
func (t *text) details() {
	d := t.d
	if t.o.Verbose == 0 {
		return
	}
	t.section("Conditions")
	conditions := Table{Header: []string{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, Whole: []string{"TYPE", "STATUS", "REASON", "SINCE"}, Width: t.o.Width}
	for _, c := range d.Conditions {
		since := "-"
		if c.Since != nil {
			since = age(t.o.Now.Sub(*c.Since))
		}
		conditions.Rows = append(conditions.Rows, []string{c.Type, c.Status, c.Reason, since, c.Message})
	}
	t.b.WriteString(conditions.String())
	t.certificates()
	if b := d.Budget; b != nil {
		t.section(fmt.Sprintf("Disruption budget  %s: %d pod%s may be evicted now; %d of at least %d are healthy", b.Name, b.Allowed, manyPods(b.Allowed), b.Healthy, b.Wanted))
	}
	if t.o.Verbose < 2 {
		return
	}
	t.leaseDetails()
	t.settings()
	t.events(d.Events, d.Name)
}

func manyPods(n int32) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// shownEvents are so many of the newest; the verb events has all.
const shownEvents = 20

// events are the newest, the latest last.
func (t *text) events(list []events.Event, name string) {
	all := ""
	if n := len(list); n > shownEvents {
		list, all = list[n-shownEvents:], fmt.Sprintf("the newest %d of %d  ", shownEvents, n)
	}
	t.section(fmt.Sprintf("Events  %s(%s events %s%s)", all, t.o.Self, name, t.o.NS))
	if len(list) == 0 {
		t.line("  none; Kubernetes forgets them after an hour")
		return
	}
	width := 0
	for _, e := range list {
		width = max(width, len(e.Object))
	}
	for _, e := range list {
		kind := fmt.Sprintf("%-7s", e.Type)
		if e.Type != "Normal" {
			kind = t.paint(iostreams.StyleYellow, kind)
		}
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		t.line("  %4s  %s  %-*s  %s: %s%s", age(t.o.Now.Sub(e.Time)), kind, width, e.Object, e.Reason, strings.ReplaceAll(e.Message, "\n", " "), times)
	}
}

// settings of mssql.conf.
func (t *text) settings() {
	t.section("mssql.conf")
	if len(t.d.Settings) == 0 {
		t.line("  nothing is set besides what the operator sets itself")
		return
	}
	for _, k := range slices.Sorted(maps.Keys(t.d.Settings)) {
		t.line("  %s = %s", k, t.d.Settings[k])
	}
}

func (t *text) certificates() {
	table := Table{Header: []string{"REPLICA", "ENDPOINT", "CERTIFICATE EXPIRES", "LEFT"}, Width: t.o.Width, Paint: func(col, cell string, row int) string {
		if col == "ENDPOINT" && cell == "STOPPED" {
			return t.paint(iostreams.StyleYellow, cell)
		}
		return cell
	}}
	for _, r := range t.d.Replicas {
		expires, remains := "?", "?"
		if r.CertificateExpiry != nil {
			expires, remains = r.CertificateExpiry.UTC().Format("2006-01-02"), age(r.CertificateExpiry.Sub(t.o.Now))
		}
		table.Rows = append(table.Rows, []string{r.Name, orWord(r.Endpoint, "?"), expires, remains})
	}
	t.section("Endpoints and certificates")
	t.b.WriteString(table.String())
}

func (t *text) leaseDetails() {
	l := t.d.Lease
	t.section("Lease")
	if l == nil {
		t.line("  not seen")
		return
	}
	t.row("Holder", "%s · epoch %d", dash(l.Holder), l.Epoch)
	switch {
	case l.Silent != nil:
		t.row("Renewed", "%s ago, by the API server's clock", seconds(int64(*l.Silent)))
	case l.Renewed != nil:
		t.row("Renewed", "%s ago, by the clocks of two machines", age(t.o.Now.Sub(*l.Renewed)))
	}
	t.row("Commit rule", "k = %d over %s · record %d", l.K, dash(strings.Join(l.Set, ", ")), l.Rule)
	t.row("Unfenced", "%s", dash(strings.Join(l.Unfenced, ", ")))
	t.row("Stale", "%s", dash(strings.Join(l.Stale, ", ")))
	if l.Problem != "" {
		t.row("No proof", "%s", l.Problem)
	}
}
