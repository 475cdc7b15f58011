// Package sqlcmd is `kubectl mssql sql`: T-SQL to a replica, without a client on the machine.
package sqlcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/tunnel"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// PasswordVariable is where scripts put the password of --login.
const PasswordVariable = "MSSQL_PASSWORD"

// loginTimeout bounds everything between the call and the first batch.
const loginTimeout = 20 * time.Second

// Options of one call.
type Options struct {
	Name     string
	Query    string
	File     string
	Replica  string
	Database string
	Login    string
	Output   string
	Timeout  time.Duration

	Factory factory.Factory
	Streams *iostreams.IOStreams
	Getenv  func(string) string
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, Getenv: os.Getenv}
	cmd := &cobra.Command{
		Use:   "sql NAME",
		Short: "Send T-SQL to the primary, or to a replica",
		Long: `Send T-SQL to a server of an availability group or instance, through the API server.

The primary is asked unless --replica names another one. The login is sa with the password of the
group's Secret; --login takes another one, with the password from the terminal or from MSSQL_PASSWORD.
A password is never given on a command line.

Results go to standard output; what the server says beside them, and errors, to standard error.
As JSON they are one document. Lines of an interactive session are kept in
~/.local/state/kubectl-mssql/sql_history (MSSQL_HISTORY names another file, or off), without those
that name a password.`,
		Example: fmt.Sprintf(`  # one statement
  %[1]s sql demo -Q "SELECT @@SERVERNAME"

  # a script with GO lines
  %[1]s sql demo -d orders -i schema.sql

  # what a program reads
  %[1]s sql demo -Q "SELECT DB_NAME() AS db, SYSDATETIME() AS now" -o json

  # line by line, with history, until exit
  %[1]s sql demo`, f.Name()),
		Args: arguments.OneName("group or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&o.Query, "query", "Q", "", "T-SQL to send")
	fl.StringVarP(&o.File, "input-file", "i", "", "file with T-SQL; - is standard input")
	fl.StringVar(&o.Replica, "replica", "", "replica to ask; the primary when left out")
	fl.StringVarP(&o.Database, "database", "d", "", "database to use")
	fl.StringVar(&o.Login, "login", "sa", "login name")
	fl.StringVarP(&o.Output, "output", "o", "text", "output format: text, csv or json")
	fl.DurationVar(&o.Timeout, "timeout", time.Minute, "how long one batch may take; 0 means for ever")
	return cmd
}

// Run connects and sends.
func (o *Options) Run(ctx context.Context) error {
	switch format(o.Output) {
	case formatText, formatCSV, formatJSON:
	default:
		return exit.Errorf(exit.Usage, "use text, csv or json", "unknown output format %q", o.Output)
	}
	if o.Query != "" && o.File != "" {
		return exit.Errorf(exit.Usage, "use one of them", "-Q and -i do not go together")
	}
	script, interactive, err := o.script()
	if err != nil {
		return err
	}
	conn, pod, closeAll, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	if o.Database != "" {
		if err := o.use(ctx, conn); err != nil {
			return err
		}
	}
	stream, ok := conn.(mssql.Streamer)
	if !ok {
		return fmt.Errorf("the session to %s cannot hand over results", pod)
	}
	if interactive {
		return o.interact(ctx, stream, pod)
	}
	return o.run(ctx, stream, script)
}

// use changes to the database of -d.
func (o *Options) use(ctx context.Context, conn mssql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if err := conn.Exec(ctx, "USE "+tsql.Ident(o.Database)); err != nil {
		return fmt.Errorf("use the database %s: %w", o.Database, err)
	}
	return nil
}

// script reads -Q, -i or a pipe; on a terminal without any of them it is interactive.
func (o *Options) script() (text string, interactive bool, err error) {
	switch {
	case o.Query != "":
		return o.Query, false, nil
	case o.File != "" && o.File != "-":
		b, err := os.ReadFile(o.File)
		if err != nil {
			return "", false, exit.With(exit.Usage, "", fmt.Errorf("read the script: %w", err))
		}
		return string(b), false, nil
	case o.Streams.StdinTTY && o.File == "":
		return "", true, nil
	}
	b, err := io.ReadAll(io.LimitReader(o.Streams.In, 64<<20))
	if err != nil {
		return "", false, fmt.Errorf("read the script from standard input: %w", err)
	}
	return string(b), false, nil
}

// run sends the batches of a script, until one fails.
func (o *Options) run(ctx context.Context, conn mssql.Streamer, script string) error {
	w := newWriter(format(o.Output), o.Streams)
	err := o.batches(ctx, conn, script, w)
	if cerr := w.Close(); cerr != nil && err == nil {
		return fmt.Errorf("write the result: %w", cerr)
	}
	return err
}

func (o *Options) batches(ctx context.Context, conn mssql.Streamer, script string, w writer) error {
	for _, b := range Split(script) {
		for range b.Count {
			if err := o.send(ctx, conn, b.Text, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends one batch. The errors of the server are shown by the writer, in their
// place; what is returned names the last one.
func (o *Options) send(ctx context.Context, conn mssql.Streamer, batch string, w writer) error {
	parent := ctx
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	err := conn.Stream(ctx, batch, w)
	switch {
	case err == nil:
		return nil
	case parent.Err() != nil:
		return exit.Errorf(exit.Interrupted, "", "interrupted; what the batch had committed stays")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exit.With(exit.Timeout, "it may have been carried out; give it more time with --timeout", err)
	}
	if e := mssql.AsError(err); e.Kind == ag.ErrMsg {
		return exit.With(exit.Unexpected, "", &batchError{number: e.Number, cause: err})
	}
	return err
}

// batchError ends a run whose errors have been shown.
type batchError struct {
	number int32
	cause  error
}

func (e *batchError) Error() string { return fmt.Sprintf("the batch failed with Msg %d", e.number) }
func (e *batchError) Unwrap() error { return e.cause }

func reported(err error) bool {
	var b *batchError
	return errors.As(err, &b)
}

// target finds the pod and the Secret of sa's password.
func (o *Options) target(ctx context.Context, c client.Client, ns string) (pod string, port int32, secret, key string, err error) {
	var g api.SQLServerAvailabilityGroup
	err = c.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, &g)
	switch {
	case err == nil:
		pod = o.Replica
		if pod == "" {
			pod = g.Status.PrimaryReplica
		}
		if pod == "" {
			return "", 0, "", "", exit.Errorf(exit.Refused, fmt.Sprintf("name one with --replica (%s), or wait: %s status %s -w", strings.Join(g.ReplicaNames(), ", "), o.Factory.Name(), o.Name),
				"%s has no primary now", o.Name)
		}
		if !slices.Contains(g.ReplicaNames(), pod) {
			return "", 0, "", "", exit.Errorf(exit.NotFound, "its replicas: "+strings.Join(g.ReplicaNames(), ", "), "%s has no replica %s", o.Name, pod)
		}
		secret, key = g.Spec.SAPasswordSecret(g.Name)
		return pod, portOr(g.Spec.Port), secret, key, nil
	case meta.IsNoMatchError(err):
		return "", 0, "", "", exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
	case !apierrors.IsNotFound(err):
		return "", 0, "", "", fmt.Errorf("read %s: %w", o.Name, err)
	}
	var i api.SQLServerInstance
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, &i); err != nil {
		if apierrors.IsNotFound(err) {
			return "", 0, "", "", exit.Errorf(exit.NotFound, o.Factory.Name()+" status lists what is there",
				"there is no availability group or instance %s in namespace %s", o.Name, ns)
		}
		return "", 0, "", "", fmt.Errorf("read %s: %w", o.Name, err)
	}
	secret, key = i.Spec.SAPasswordSecret(i.Name)
	return i.Name + "-0", portOr(i.Spec.Port), secret, key, nil
}

func portOr(p int32) int32 {
	if p == 0 {
		return api.PortTDS
	}
	return p
}

func (o *Options) connect(ctx context.Context) (mssql.Conn, string, func(), error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, "", nil, err
	}
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return nil, "", nil, err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return nil, "", nil, err
	}
	pod, port, secret, key, err := o.target(ctx, c, ns)
	if err != nil {
		return nil, "", nil, err
	}
	password, err := o.password(ctx, c, ns, secret, key)
	if err != nil {
		return nil, "", nil, err
	}
	dialCtx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	tun, err := tunnel.Open(dialCtx, config, ns, pod, port)
	if err != nil {
		return nil, "", nil, err
	}
	// The tunnel ends on the pod's own loopback and is authenticated by the API server
	// and the kubelet, so the server's certificate adds nothing here.
	d := &mssql.Dialer{AppName: "kubectl mssql sql", LoginTimeout: 15 * time.Second}
	conn, err := d.Dial(dialCtx, tun.Addr(), mssql.Login{User: o.Login, Password: func(context.Context) (string, error) { return password, nil }})
	if err != nil {
		tun.Close()
		return nil, "", nil, fmt.Errorf("log in to %s as %s: %w", pod, o.Login, err)
	}
	return conn, pod, func() {
		_ = conn.Close() // the session ends with its tunnel in any case
		tun.Close()
	}, nil
}

// password of sa comes from the Secret; of another login from the environment or the terminal.
func (o *Options) password(ctx context.Context, c client.Client, ns, secret, key string) (string, error) {
	if v := o.Getenv(PasswordVariable); v != "" {
		return v, nil
	}
	if o.Login == "sa" {
		var s corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: secret}, &s); err != nil {
			return "", fmt.Errorf("read the password of sa from Secret %s: %w", secret, err)
		}
		v, ok := s.Data[key]
		if !ok {
			return "", exit.Errorf(exit.NotFound, "", "Secret %s has no key %s", secret, key)
		}
		return strings.TrimRight(string(v), "\r\n"), nil
	}
	if !o.Streams.CanPrompt() {
		return "", exit.Errorf(exit.Usage, "set "+PasswordVariable, "no password for login %s, and no terminal to ask on", o.Login)
	}
	fmt.Fprintf(o.Streams.ErrOut, "Password of %s: ", o.Login)
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(o.Streams.ErrOut)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(b), nil
}
