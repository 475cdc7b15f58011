package report

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/measure"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/report/scenario"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/tunnel"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/live"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// patience with one server: login, and a batch on one that is busy.
const patience = 20 * time.Second

// managers: what each instance manager tells people.
func (g *gatherer) managers(ctx context.Context) {
	asker, err := measure.New(g.config)
	if err != nil {
		g.archive.Fail("instance managers", err)
		return
	}
	for replica, a := range measure.All(ctx, asker, g.namespace, g.facts.replicas()) {
		if a.Err != nil {
			g.archive.Fail("instance manager of "+replica, a.Err)
			continue
		}
		g.addJSON("managers/"+replica+".json", "what the instance manager of "+replica+" says", a.Report)
	}
}

// servers: one look with the operator's own eyes, what the rules decide from it, and
// the answers of each server as they are. Nothing is carried out.
func (g *gatherer) servers(ctx context.Context) {
	if g.o.ErrorLog {
		g.errorLogs(ctx)
	}
	if g.facts.group == nil {
		return
	}
	system := live.New(live.Options{Client: g.client, Reader: g.client, Clock: g.o.Factory.Clock(), Identity: "report", Dial: tunnel.Dialer(g.config)})
	defer system.Close()
	system.Observer.Timeout = patience
	key := ag.Key{Namespace: g.namespace, Name: g.o.Name}
	r, err := system.Look(ctx, key, g.o.Factory.Clock())
	if err != nil {
		g.archive.Fail("a look at the servers", err)
		return
	}
	g.decision(r)
	var wg sync.WaitGroup
	for _, replica := range r.Snapshot.Replicas {
		if replica.Local.Reach != ag.ReachOK {
			g.archive.Fail("server of "+replica.Name, fmt.Errorf("%s: %w", replica.Local.Reach, orUnknown(replica.Local.Err)))
		}
		if replica.Pod.IP == "" {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			g.queries(ctx, system, key, r.Policy.Group, replica)
		})
	}
	wg.Wait()
}

func orUnknown(e *ag.Error) error {
	if e == nil {
		return fmt.Errorf("no answer")
	}
	return e
}

// decision is what the rules make of the look, for people and as a test of the rules.
func (g *gatherer) decision(r agops.Report) {
	g.addJSON("decision/seen.json", "what the look has seen: snapshot, record of the Lease, policy, memory", struct {
		Snapshot  ag.Snapshot  `json:"snapshot"`
		Authority ag.Authority `json:"authority"`
		NoProof   string       `json:"noProof"`
		Policy    ag.Policy    `json:"policy"`
		Memory    ag.Memory    `json:"memory"`
	}{r.Snapshot, r.Authority, r.NoProof, r.Policy, r.Memory})
	if !r.Memory.Initialized {
		return
	}
	verdict := decide.Explain(r.Decision) + decide.ExplainReadiness(r.Decision)
	g.mu.Lock()
	g.verdict = verdict
	g.mu.Unlock()
	g.archive.Add("decision/decision.txt", "what the rules would do now, and who would be promoted", []byte(verdict))
	text, err := scenario.Format(scenario.Captured{
		Title: fmt.Sprintf("%s/%s as captured at %s", g.namespace, g.o.Name, r.Now.Format(time.RFC3339)),
		Input: decide.Input{Now: r.Now, Observer: "look", Authority: r.Authority, Snapshot: r.Snapshot, Policy: r.Policy, Memory: r.Memory},
	})
	if err != nil {
		g.archive.Fail("decision/scenario.txt", err)
		return
	}
	g.archive.Add("decision/scenario.txt", "the same as a test of the rules", text)
}

// queries are the server's own answers to what the operator asks at each pass.
func (g *gatherer) queries(ctx context.Context, s *live.System, key ag.Key, group string, replica ag.Replica) {
	conn, err := s.Servers.Connect(ctx, key, replica.Name, replica.Pod)
	if err != nil {
		g.archive.Fail("queries to "+replica.Name, err)
		return
	}
	defer func() { _ = conn.Close() }()
	var b strings.Builder
	for _, q := range []struct{ title, batch string }{
		{"Group, replicas, copies, databases, endpoint, seeding", tsql.Observe(group)},
		{"Certificates and logins of the endpoints", tsql.Trust()},
		{"sp_server_diagnostics", tsql.Diagnostics()},
	} {
		fmt.Fprintf(&b, "== %s\n", q.title)
		results, err := conn.Query(ctx, q.batch)
		for _, r := range results {
			writeResult(&b, r)
		}
		if err != nil {
			g.archive.Fail("query "+q.title+" on "+replica.Name, err)
			break
		}
	}
	g.archive.Add("queries/"+replica.Name+".txt", "what the server of "+replica.Name+" says of itself and the group", []byte(b.String()))
}

// writeResult writes one result set, a value a line: some are long.
func writeResult(b *strings.Builder, r mssql.Result) {
	if len(r.Columns) == 0 {
		return
	}
	fmt.Fprintf(b, "-- %s: %d rows\n", strings.Join(r.Columns, ", "), len(r.Rows))
	for _, row := range r.Rows {
		texts := make([]string, len(row))
		for i, v := range row {
			switch x := v.(type) {
			case nil:
				texts[i] = "NULL"
			case []byte:
				texts[i] = fmt.Sprintf("0x%x", x)
			case time.Time:
				texts[i] = x.UTC().Format(time.RFC3339Nano)
			default:
				texts[i] = fmt.Sprint(x)
			}
		}
		b.WriteString(strings.Join(texts, " | ") + "\n")
	}
	b.WriteString("\n")
}

// errorLogs reads the present error log and the one before, as sa.
func (g *gatherer) errorLogs(ctx context.Context) {
	spec := g.facts.spec()
	if spec == nil {
		g.archive.Fail("error logs", fmt.Errorf("the resource could not be read, so the password of sa is not known"))
		return
	}
	name, key := spec.SAPasswordSecret(g.o.Name)
	var secret corev1.Secret
	if err := g.client.Get(ctx, types.NamespacedName{Namespace: g.namespace, Name: name}, &secret); err != nil {
		g.archive.Fail("error logs: the password of sa", err)
		return
	}
	password := strings.TrimRight(string(secret.Data[key]), "\r\n")
	g.archive.redact.Learn([]byte(password))
	port := spec.Port
	if port == 0 {
		port = api.PortTDS
	}
	var wg sync.WaitGroup
	for _, replica := range g.facts.replicas() {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if err := g.errorLog(ctx, replica, port, password); err != nil {
				g.archive.Fail("error log of "+replica, err)
			}
		})
	}
	wg.Wait()
}

func (g *gatherer) errorLog(ctx context.Context, replica string, port int32, password string) error {
	t, err := tunnel.Open(ctx, g.config, g.namespace, replica, port)
	if err != nil {
		return err
	}
	defer t.Close()
	d := &mssql.Dialer{AppName: "kubectl mssql report", LoginTimeout: patience}
	conn, err := d.Dial(ctx, t.Addr(), mssql.Login{User: "sa", Password: func(context.Context) (string, error) { return password, nil }})
	if err != nil {
		return fmt.Errorf("log in as sa: %w", err)
	}
	defer func() { _ = conn.Close() }()
	for archive, file := range []string{"ERRORLOG", "ERRORLOG.1"} {
		results, err := conn.Query(ctx, tsql.ErrorLog(archive))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var b strings.Builder
		for _, r := range results {
			for _, row := range r.All() {
				fmt.Fprintf(&b, "%s %s %s\n", row.Time("LogDate").Format("2006-01-02 15:04:05.00"), row.Text("ProcessInfo"), row.Text("Text"))
			}
		}
		g.archive.Add("errorlog/"+replica+"/"+file, "", []byte(b.String()))
	}
	return nil
}
