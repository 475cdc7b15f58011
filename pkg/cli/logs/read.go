package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Pauses of a follower: before a log that ended is opened again, and between looks for
// new pods.
const (
	reopenAfter = time.Second
	findAgain   = 5 * time.Second
)

// reader gives the lines of streams that pass the filters.
type reader struct {
	o         *Options
	client    kubernetes.Interface
	namespace string
	replicas  []string
	pattern   *regexp.Regexp
}

func (r *reader) options(s stream, follow bool, after time.Time) *corev1.PodLogOptions {
	opts := &corev1.PodLogOptions{Container: s.container, Follow: follow, Timestamps: true, Previous: r.o.Previous && !s.operator}
	switch {
	case !after.IsZero():
		t := metav1.NewTime(after.Truncate(time.Second))
		opts.SinceTime = &t
	default:
		if r.o.Since > 0 {
			sec := int64(max(r.o.Since/time.Second, 1))
			opts.SinceSeconds = &sec
		}
		if r.o.Tail >= 0 {
			tail := r.o.Tail
			opts.TailLines = &tail
		}
	}
	return opts
}

// read gives every line after the instant until the log ends.
func (r *reader) read(ctx context.Context, s stream, follow bool, after time.Time, each func(Line)) error {
	body, err := r.client.CoreV1().Pods(s.namespace).GetLogs(s.pod, r.options(s, follow, after)).Stream(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.source, err)
	}
	defer func() { _ = body.Close() }()
	br := bufio.NewReaderSize(body, 64<<10)
	var c classifier
	for {
		raw, err := br.ReadString('\n')
		if raw != "" {
			if l := c.classify(Parse(s.source, raw), r.pattern); r.keep(s, l, raw) && (after.IsZero() || l.At.After(after)) {
				each(l)
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s: %w", s.source, err)
		}
	}
}

func (r *reader) keep(s stream, l Line, raw string) bool {
	switch {
	case s.operator && !Concerns(raw, r.namespace, r.o.Name, r.replicas...):
		return false
	case r.o.ErrorLog && !l.Server:
		return false
	}
	return Keep(l, r.o.Level)
}

// nothing tells an error that only means that there is no log yet, or none any more.
func nothing(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) }

// once merges what is there in time order, and gives the time of each stream's newest
// line. A stream that cannot be read costs one line.
func (o *Options) once(ctx context.Context, r *reader, streams []stream, p *printer) (map[string]time.Time, error) {
	all := make([][]Line, len(streams))
	errs := make([]error, len(streams))
	var wg sync.WaitGroup
	for i, s := range streams {
		wg.Go(func() { errs[i] = r.read(ctx, s, false, time.Time{}, func(l Line) { all[i] = append(all[i], l) }) })
	}
	wg.Wait()
	newest := map[string]time.Time{}
	for i, s := range streams {
		if n := len(all[i]); n > 0 {
			newest[s.key()] = all[i][n-1].At
		}
	}
	lines := slices.Concat(all...)
	slices.SortStableFunc(lines, func(a, b Line) int { return a.At.Compare(b.At) })
	for _, l := range lines {
		p.print(l)
	}
	failed := 0
	var forbidden error
	for _, err := range errs {
		if err == nil {
			continue
		}
		failed++
		if apierrors.IsForbidden(err) {
			forbidden = err
		}
		if !nothing(err) || o.Previous {
			fmt.Fprintf(o.Streams.ErrOut, "Not seen  %v\n", err)
		}
	}
	switch {
	case failed < len(streams) || o.Follow:
		return newest, nil
	case forbidden != nil:
		return nil, exit.With(exit.Forbidden, "ask for: get pods/log", forbidden)
	}
	return nil, exit.Errorf(exit.Unexpected, o.Factory.Name()+" events "+o.Name+" may say why", "no log could be read")
}

// follow prints what is there in time order, then everything new: of these containers, of
// their next runs, and of pods that come later.
func (o *Options) follow(ctx context.Context, r *reader, streams []stream, p *printer, find func(context.Context) ([]stream, error)) error {
	newest, err := o.once(ctx, r, streams, p)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	running := map[string]context.CancelFunc{}
	start := func(s stream) {
		after := newest[s.key()]
		sctx, cancel := context.WithCancel(ctx)
		running[s.key()] = cancel
		wg.Go(func() { o.tail(sctx, r, s, after, p) })
	}
	for _, s := range streams {
		start(s)
	}
	ticker := o.Factory.Clock().NewTicker(findAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, cancel := range running {
				cancel()
			}
			return nil // Ctrl-C is how a person ends it
		case <-ticker.C():
		}
		again, err := find(ctx)
		if err != nil {
			continue // the streams go on as they are
		}
		now := map[string]bool{}
		for _, s := range again {
			now[s.key()] = true
			if running[s.key()] == nil {
				newest[s.key()] = time.Unix(0, 1) // of a pod that came later every line is new
				start(s)
			}
		}
		for key, cancel := range running {
			if !now[key] {
				cancel()
				delete(running, key)
			}
		}
	}
}

// tail follows one container through its runs.
func (o *Options) tail(ctx context.Context, r *reader, s stream, after time.Time, p *printer) {
	told := ""
	for {
		err := r.read(ctx, s, true, after, func(l Line) {
			if l.At.After(after) {
				after = l.At
			}
			p.print(l)
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil && !nothing(err) && err.Error() != told {
			told = err.Error()
			fmt.Fprintf(o.Streams.ErrOut, "Not seen  %v\n", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.Factory.Clock().After(reopenAfter):
		}
	}
}

// printer writes whole lines, one at a time, each source in its own colour.
type printer struct {
	mu     sync.Mutex
	o      *Options
	width  int
	colors map[string]iostreams.Style
}

func newPrinter(o *Options, streams []stream) *printer {
	p := &printer{o: o, colors: map[string]iostreams.Style{}}
	for _, s := range streams {
		p.width = max(p.width, len(s.source))
		p.color(s.source)
	}
	return p
}

func (p *printer) print(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.o.Streams.ColorOut()
	stamp, text := "", l.Text
	if p.o.Timestamps && !l.At.IsZero() {
		stamp = iostreams.Paint(on, iostreams.StyleDim, l.At.UTC().Format("2006-01-02 15:04:05.000Z")) + "  "
		if l.Server {
			text = withoutTime(text)
		}
	}
	switch severity(l.Level) {
	case 3:
		text = iostreams.Paint(on, iostreams.StyleRed, text)
	case 2:
		text = iostreams.Paint(on, iostreams.StyleYellow, text)
	}
	fmt.Fprintf(p.o.Streams.Out, "%s%s  %s\n", stamp, iostreams.Paint(on, p.color(l.Source), fmt.Sprintf("%-*s", p.width, l.Source)), text)
}

// color of a source: the first ones have five different ones; the operator is not coloured.
func (p *printer) color(source string) iostreams.Style {
	if source == "operator" {
		return iostreams.StyleBold
	}
	palette := []iostreams.Style{"\x1b[36m", "\x1b[35m", "\x1b[34m", "\x1b[32m", "\x1b[33m"}
	if _, ok := p.colors[source]; !ok {
		p.colors[source] = palette[len(p.colors)%len(palette)]
	}
	return p.colors[source]
}
