package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

const (
	// lookPause between two looks, and while a role change is under way.
	lookPause, briskPause = 2 * time.Second, time.Second
	// answerLimit is how long a look may take: a manager that does not answer gets three
	// seconds, all at once, and the rest is for a busy machine.
	answerLimit = 8 * time.Second
	// unnoticed is how long writes may be down while the status still says Healthy.
	unnoticed = 10 * time.Second
)

// onlooker is a person who asks for the status and for a dry run of a failover all the
// time, from before a fault until the group is healthy again, on the screen and as a
// document. Every answer must be true, in time and of use.
type onlooker struct {
	s *scene
	// node of the client, and the Service that it writes to.
	node, service string
	stop          context.CancelFunc
	done          sync.WaitGroup
	slots         chan struct{}

	mu      sync.Mutex
	looks   int
	moving  bool // a role change was under way in the newest look
	slowest time.Duration
	last    string
	said    strings.Builder // everything, in lower case
	wrong   []string
	end     look // the newest one with a document
}

// look is what was answered at one moment.
type look struct {
	began, ended time.Time
	status       answer // the document
	screen       answer
	dry          answer // the document
	dryScreen    answer
	document     status.Document
	plan         change.Result
}

// answer of one call of the plugin.
type answer struct {
	out, err string
	code     exit.Code
	took     time.Duration
}

// watch begins to look.
func (s *scene) watch(t *testing.T) *onlooker {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o := &onlooker{s: s, node: s.e.podNode(t, s.client.name), service: s.e.group(t, s.group).ListenerName(), stop: stop, slots: make(chan struct{}, 4)}
	o.done.Go(func() {
		for {
			o.slots <- struct{}{} // a slow answer does not hold the next look up
			o.done.Go(func() {
				defer func() { <-o.slots }()
				o.take(ctx)
			})
			pause := lookPause
			if o.hurried() {
				pause = briskPause
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	})
	t.Cleanup(stop)
	return o
}

func (o *onlooker) hurried() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.moving
}

// ask runs the plugin's own code in this process, as the binary would.
func (o *onlooker) ask(ctx context.Context, args ...string) answer {
	var out, errOut bytes.Buffer
	streams := &iostreams.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut, Color: iostreams.ColorNever, Width: 100}
	began := time.Now()
	args = append(args, "-n", namespace, "--kubeconfig", o.s.e.cluster.Kubeconfig())
	code := cli.Execute(ctx, cli.NewRoot("kubectl-mssql", streams), streams, args)
	return answer{out.String(), errOut.String(), code, time.Since(began)}
}

// take is one look, from all four sides at once.
func (o *onlooker) take(ctx context.Context) {
	l := look{began: time.Now()}
	silent := o.silentSince(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.status = o.ask(ctx, "status", o.s.group, "-o", "json") })
	wg.Go(func() { l.screen = o.ask(ctx, "status", o.s.group) })
	wg.Go(func() { l.dry = o.ask(ctx, "failover", o.s.group, "--dry-run", "-o", "json") })
	wg.Go(func() { l.dryScreen = o.ask(ctx, "failover", o.s.group, "--dry-run") })
	wg.Wait()
	l.ended = time.Now()
	if ctx.Err() != nil {
		return // ended in the middle: whatever was answered is no answer
	}
	wrong := l.judge()
	if l.document.Phase == string(api.PhaseHealthy) && !silent.IsZero() && l.began.Sub(silent) > unnoticed {
		// The answer rests on what was there a moment ago: it is wrong when that still holds.
		if again := o.silentSince(ctx); again.Equal(silent) && !o.ledElsewhere(ctx, l.document.Primary) {
			wrong = append(wrong, fmt.Sprintf("the status says Healthy, and no write was acknowledged for %s", l.ended.Sub(silent).Round(time.Second)))
		}
	}
	o.record(l, wrong)
}

// ledElsewhere: kube-proxy on the client's node leads it to another replica than the
// primary, and has not heard yet of what the API server shows. Nobody but the node can tell.
func (o *onlooker) ledElsewhere(ctx context.Context, primary string) bool {
	addresses, ok := proxyRules(ctx, o.node, o.service)
	if to := o.s.named(addresses); ok && to != "["+primary+"]" {
		o.s.timeline.note("the rules of %s lead to %s, the primary is %s: kube-proxy has not followed", o.node, to, primary)
		return true
	}
	return false
}

// silentSince is the client's last acknowledged row; zero when the client cannot be asked.
func (o *onlooker) silentSince(ctx context.Context) time.Time {
	r, err := o.s.client.report(ctx)
	if err != nil {
		return time.Time{}
	}
	return r.LastAck
}

func (o *onlooker) record(l look, wrong []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	for _, a := range []answer{l.status, l.screen, l.dry, l.dryScreen} {
		o.slowest = max(o.slowest, a.took)
		o.said.WriteString(strings.ToLower(a.out + a.err))
	}
	o.moving = l.document.Operation != nil
	at := l.began.Sub(o.s.timeline.begin).Seconds()
	for _, w := range wrong {
		o.wrong = append(o.wrong, fmt.Sprintf("at %.1f s: %s", at, w))
	}
	if l.document.Kind != "" && l.began.After(o.end.began) {
		o.end = l
	}
	if text := l.summary(); withoutDigits(text) != o.last {
		o.last = withoutDigits(text)
		o.s.timeline.noteAt(l.began, "said: %s", text)
	}
}

var digits = regexp.MustCompile(`[0-9]+ s left|[0-9]+s left|[0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]+[smh]\b|\(Timeout|\(Refused`)

// withoutDigits leaves out what changes with time alone.
func withoutDigits(s string) string { return digits.ReplaceAllString(s, "#") }

// summary is the answer in two lines at most.
func (l look) summary() string {
	d := l.document
	if d.Kind == "" {
		return "no answer: " + firstOf(l.status.err)
	}
	text := d.Phase
	if d.Operation != nil {
		text += fmt.Sprintf(", %s (%s)", d.Operation.Now, d.Operation.Phase)
	} else if d.Phase != string(api.PhaseHealthy) {
		text += ", " + d.Reason
	}
	if w := d.Waiting; w != nil {
		text += "; waiting for " + w.For
		if w.LeftSeconds != nil {
			text += fmt.Sprintf(", %.0f s left", *w.LeftSeconds)
		}
	}
	switch {
	case l.plan.Kind == "":
		return text + " | dry run: no answer: " + firstOf(l.dry.err)
	case l.plan.To != "":
		return text + " | dry run: " + l.plan.To
	}
	var refused []string
	for _, r := range l.plan.Replicas {
		refused = append(refused, r.Name+" "+r.Refusal)
	}
	return text + " | dry run: nobody: " + strings.Join(refused, "; ")
}

func firstOf(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// judge reads the answers, and says what is wrong with them.
func (l *look) judge() []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for what, a := range map[string]answer{"status": l.status, "the screen": l.screen, "the dry run": l.dry, "the dry run's screen": l.dryScreen} {
		if a.took > answerLimit {
			complain("%s took %s", what, a.took.Round(100*time.Millisecond))
		}
		if a.out == "" && !strings.Contains(a.err, "API server") {
			complain("%s says neither what is nor what does not answer: %q", what, a.err)
		}
		for _, code := range codes.FindAllString(a.out+a.err, -1) {
			if _, known := reasons.Find(code); !known {
				complain("%s prints %s, which nothing explains", what, code)
			}
		}
	}
	if l.status.out != "" {
		if err := json.Unmarshal([]byte(l.status.out), &l.document); err != nil || l.document.Kind != status.KindGroup {
			complain("the status is no document of its kind: %v", err)
		} else {
			l.judgeStatus(complain)
		}
	}
	// A document of a call that has failed for want of an API server names no replica.
	if strings.Contains(l.dry.out, `"replicas": [`) && l.dry.code != exit.Unexpected {
		if err := json.Unmarshal([]byte(l.dry.out), &l.plan); err != nil {
			complain("the dry run is no document: %v", err)
		} else {
			l.judgePlan(complain)
		}
	}
	return wrong
}

var codes = regexp.MustCompile(`MSSQL[0-9]{4}`)

func (l *look) judgeStatus(complain func(string, ...any)) {
	d := l.document
	if d.Phase == "" || d.Phase != string(api.PhaseHealthy) && d.Reason == "" && d.Operation == nil {
		complain("phase %q without a reason", d.Phase)
	}
	if d.Operation != nil && (d.Operation.Now == "" || d.Operation.Target == "") {
		complain("a role change under way without what or to whom: %+v", *d.Operation)
	}
	for _, p := range d.Problems {
		if _, known := reasons.Find(p.Code); !known {
			complain("problem %q has the code %q", p.Message, p.Code)
		}
	}
	for _, x := range d.Errors {
		if _, known := reasons.Find(x.Code); !known {
			complain("error %q has the code %q", x.Message, x.Code)
		}
	}
	for _, x := range d.Refusals {
		if x.Rule != "" && reasons.Code(x.Rule) == "" {
			complain("rule %q is not explained", x.Rule)
		}
	}
	for _, r := range d.Replicas {
		if !strings.Contains(l.screen.out, r.Name) && l.screen.out != "" {
			complain("the screen leaves %s out", r.Name)
		}
	}
}

// judgePlan: one candidate is named, or for each replica why it is none.
func (l *look) judgePlan(complain func(string, ...any)) {
	p := l.plan
	if len(p.Replicas) == 0 {
		complain("the dry run names no replica")
	}
	under := p.UnderWay != nil && p.UnderWay.Target == p.To
	for _, r := range p.Replicas {
		switch {
		case !r.Ready && (r.Refusal == "" || r.Refusal == "not seen yet"):
			complain("the dry run refuses %s and does not say why: %q", r.Name, r.Refusal)
		case p.To == r.Name && !r.Ready && !under:
			complain("the dry run would promote %s and refuses it: %s", r.Name, r.Refusal)
		}
	}
	if p.To == "" && l.dry.code != exit.Refused {
		complain("the dry run names nobody and ends with %d", l.dry.code)
	}
}

// lastLook waits until people are told that all is well, and who would be next. After an
// outage of the API server Kubernetes first takes nodes for lost whose kubelets ask again
// with pauses of up to a minute.
func (o *onlooker) lastLook(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 90*time.Second, true, func(context.Context) (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.end.document.Phase == string(api.PhaseHealthy) && o.end.plan.To != "", nil
	})
	if err != nil {
		t.Errorf("the last look does not say Healthy with a candidate: %s", o.end.summary())
	}
}

// finish ends the looking and fails the case for every wrong answer. told are words that
// must have been said at least once; {primary} is the primary before the fault.
func (o *onlooker) finish(t *testing.T, told []string) {
	t.Helper()
	o.lastLook(t)
	o.stop()
	o.done.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, w := range o.wrong {
		if i == 10 {
			t.Errorf("and %d more", len(o.wrong)-i)
			break
		}
		t.Errorf("an onlooker is misled %s", w)
	}
	for _, words := range told {
		words = strings.ToLower(strings.ReplaceAll(words, "{primary}", o.s.primary))
		if !strings.Contains(o.said.String(), words) {
			t.Errorf("nobody was ever told %q", words)
		}
	}
	if o.looks == 0 {
		t.Error("nobody has looked")
	}
	t.Logf("%d looks, the slowest answer after %s", o.looks, o.slowest.Round(100*time.Millisecond))
}
