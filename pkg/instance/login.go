//go:build linux

package instance

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// Cadence of the login check: often until the server accepts one, then as often as a
// probe may look. A login costs the server a password hash.
const (
	loginWhileStarting = time.Second
	loginInterval      = 10 * time.Second
	loginTimeout       = 5 * time.Second
	// setupTimeout bounds the batches of the first start: a server that has just come up
	// still recovers.
	setupTimeout = 30 * time.Second
)

// loginLoop keeps the login kubectl_mssql in step with the mounted password, checks the
// server's name once a start, and feeds /startup and /ready: login and query of a
// unique token (FG 7.7).
func (m *manager) loginLoop(ctx context.Context) {
	for n := 1; ; n++ {
		wait := loginInterval
		err := m.checkLogin(ctx, fmt.Sprintf("%s-%d", m.run.Nonce, n))
		if err != nil {
			wait = loginWhileStarting
		}
		m.enterLogin(ctx, err)
		if !pause(ctx, wait) {
			return
		}
	}
}

func (m *manager) enterLogin(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	now := m.clock.now().Mono
	before := m.view.snapshot()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	m.view.with(func(v *view) {
		v.loginProblem = problem
		if err == nil {
			v.accepted, v.acceptedAt = true, now
			if v.phase == phaseStarting {
				v.phase = phaseRunning
			}
		}
	})
	switch {
	case err == nil && !before.accepted:
		m.log.Info("Server accepted logins")
	case err != nil && problem != before.loginProblem:
		m.log.Info("Server does not accept logins yet", "err", problem)
	}
}

func (m *manager) checkLogin(ctx context.Context, token string) error {
	if !m.nameChecked.Load() {
		// Before anything is built on it: a server under another name must not join a group.
		if err := m.setUp(ctx); err != nil {
			return err
		}
		m.nameChecked.Store(true)
	}
	if err := m.followSAPassword(ctx); err != nil {
		m.logOnce("sa", err)
	}
	err := m.ping(ctx, token)
	var e *ag.Error
	if !errors.As(err, &e) || e.Kind != ag.ErrLogin {
		return err
	}
	// The mounted password is not the server's: sa sets it.
	if repairErr := m.makeOperatorLogin(ctx); repairErr != nil {
		return errors.Join(err, repairErr)
	}
	return m.ping(ctx, token)
}

// ping logs in as kubectl_mssql and asks for a token that no other answer can hold.
func (m *manager) ping(ctx context.Context, token string) error {
	password, err := readPassword(m.o.OperatorPasswordFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	c, err := m.dial(ctx, operatorLogin, password)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	results, err := c.Query(ctx, tsql.Ping(token))
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || results[0].Row(0).Text("token") != token {
		return errors.New("the server answered a query with something else than was asked for")
	}
	return nil
}

// setUp is done once for each start of sqlservr, as sa: the login of the operator, and
// the server's name. When sa cannot log in (disabled, or its password was changed in
// the server alone) but kubectl_mssql can, the login is there already and only the
// name is looked at.
func (m *manager) setUp(ctx context.Context) error {
	c, saErr := m.dialSA(ctx)
	if saErr == nil {
		defer func() { _ = c.Close() }()
		if err := firstStartDone(m.o); err != nil {
			m.logOnce("first-start", err)
		}
		if err := m.makeLoginOn(ctx, c); err != nil {
			return err
		}
		return m.checkName(ctx, c, true)
	}
	var e *ag.Error
	if !errors.As(saErr, &e) || e.Kind != ag.ErrLogin {
		return saErr
	}
	password, err := readPassword(m.o.OperatorPasswordFile)
	if err != nil {
		return err
	}
	dialCtx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	own, err := m.dial(dialCtx, operatorLogin, password)
	if err != nil {
		return fmt.Errorf("neither sa nor %s can log in: %w; the server's passwords are not those of the Secrets: set them with ALTER LOGIN", operatorLogin, errors.Join(saErr, err))
	}
	defer func() { _ = own.Close() }()
	m.logOnce("sa", fmt.Errorf("sa cannot log in with the password of its Secret: %w", saErr))
	return m.checkName(ctx, own, false)
}

// dialSA logs in as sa, and remembers the password that worked, so that a changed
// Secret can be followed.
func (m *manager) dialSA(ctx context.Context) (mssql.Conn, error) {
	password, err := readPassword(m.o.SAPasswordFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	c, err := m.dial(ctx, saLogin, password)
	if err == nil {
		m.saPassword = password
	}
	return c, err
}

// followSAPassword sets sa's password to the mounted one when that has changed since
// one of this run worked (FG 7.6: a changed Secret is not applied by a restart).
func (m *manager) followSAPassword(ctx context.Context) error {
	wanted, err := readPassword(m.o.SAPasswordFile)
	if err != nil || m.saPassword == "" || wanted == m.saPassword {
		return err
	}
	if err := checkPolicy(wanted); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	c, err := m.dial(ctx, saLogin, m.saPassword)
	if err != nil {
		// Perhaps somebody has set the new one already.
		if again, newErr := m.dial(ctx, saLogin, wanted); newErr == nil {
			m.saPassword = wanted
			return again.Close()
		}
		return fmt.Errorf("follow the changed password of sa: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Exec(ctx, tsql.SetLoginPassword(saLogin, wanted)); err != nil {
		return fmt.Errorf("follow the changed password of sa: %w", err)
	}
	m.saPassword = wanted
	m.log.Info("Password of sa was changed to that of its Secret")
	return nil
}

func (m *manager) makeOperatorLogin(ctx context.Context) error {
	c, err := m.dialSA(ctx)
	if err != nil {
		return fmt.Errorf("set the password of %s as sa: %w", operatorLogin, err)
	}
	defer func() { _ = c.Close() }()
	return m.makeLoginOn(ctx, c)
}

// makeLoginOn makes the login and its rights, and sets its password. All of it may be repeated.
func (m *manager) makeLoginOn(ctx context.Context, c mssql.Conn) error {
	password, err := readPassword(m.o.OperatorPasswordFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	masterKey, err := unknownPassword()
	if err != nil {
		return err
	}
	for _, batch := range append(tsql.OperatorLogin(operatorLogin, password, masterKey), tsql.SetLoginPassword(operatorLogin, password)) {
		if err := c.Exec(ctx, batch); err != nil {
			return fmt.Errorf("make the login %s: %w", operatorLogin, err)
		}
	}
	return nil
}

// unknownPassword satisfies every policy, and nobody needs to know it.
func unknownPassword() (string, error) {
	b := make([]byte, 24)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make a random password: %w", err)
	}
	return "Aa1!" + base64.RawURLEncoding.EncodeToString(b), nil
}

// checkName compares the server's name with the pod's (FG 7.4). A new one is registered
// where no group depends on the old one; it takes a restart of sqlservr.
func (m *manager) checkName(ctx context.Context, c mssql.Conn, mayChange bool) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	// A standalone pod's name may be longer than SQL Server takes.
	want := v1alpha1.HostName(m.id.Pod)
	results, err := c.Query(ctx, tsql.ServerNames())
	if err != nil {
		return fmt.Errorf("read the server's name: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return errors.New("read the server's name: the server did not tell it")
	}
	row := results[0].Row(0)
	name, registered := row.Text("server_name"), row.Text("registered_name")
	switch {
	case strings.EqualFold(name, want):
		return nil
	case row.Int("group_count") > 0:
		return fmt.Errorf("the server is called %q, not %q, and has an availability group under that name: this volume belongs to another replica; give the pod its own volume back, or re-initialise this replica", name, want)
	case !mayChange:
		return fmt.Errorf("the server is called %q, not %q, and only sa can change that", name, want)
	}
	if m.renamedIn > 0 && m.starts.Load() > m.renamedIn {
		return fmt.Errorf("the server is called %q although it was renamed to %q and restarted", name, want)
	}
	if m.renamedIn > 0 {
		return errRestarting
	}
	if !strings.EqualFold(registered, want) {
		if err := c.Exec(ctx, tsql.RenameServer(registered, want)); err != nil {
			return fmt.Errorf("rename the server from %q to %q: %w", name, want, err)
		}
	}
	m.log.Info("Server was renamed and restarts", "from", name, "to", want)
	m.renamedIn = m.starts.Load()
	m.askRestart()
	return errRestarting
}

// errRestarting is why logins do not work just now.
var errRestarting = errors.New("the server restarts under its new name")
