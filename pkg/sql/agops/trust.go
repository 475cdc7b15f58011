package agops

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// endpointName of the mirroring endpoints that are made here; one that is there keeps its own.
const endpointName = "kubectl_mssql_mirroring"

// certificateYears is how long an endpoint certificate is valid. It is trusted
// by being known to the peers, not by its dates.
const certificateYears = 10

// trustFacts are what a server has of FG 2.
type trustFacts struct {
	masterKey    bool
	certificates []certificate
	logins       []string
}

type certificate struct {
	name       string
	thumbprint []byte
	private    bool
}

func (f trustFacts) find(name string) *certificate {
	for i := range f.certificates {
		if strings.EqualFold(f.certificates[i].name, name) {
			return &f.certificates[i]
		}
	}
	return nil
}

func readTrust(ctx context.Context, c mssql.Conn) (trustFacts, error) {
	results, err := c.Query(ctx, tsql.Trust())
	if err != nil {
		return trustFacts{}, err
	}
	if len(results) != tsql.TrustSets {
		return trustFacts{}, &ag.Error{Kind: ag.ErrUnknown, Message: "the server answered the question for its certificates with the wrong number of result sets"}
	}
	var f trustFacts
	for _, row := range results[0].All() {
		f.masterKey = row.Int("master_keys") > 0
	}
	for _, row := range results[1].All() {
		key := row.Text("private_key")
		f.certificates = append(f.certificates, certificate{
			name: row.Text("name"), thumbprint: row.Bytes("thumbprint"), private: key != "" && key != "NA",
		})
	}
	for _, row := range results[2].All() {
		f.logins = append(f.logins, row.Text("name"))
	}
	return f, nil
}

// makeEndpoints gives every server without one its own certificate, whose private key
// never leaves it, and a started mirroring endpoint.
func (s *Setup) makeEndpoints(ctx context.Context, r *Report) error {
	for i := range r.Snapshot.Replicas {
		replica := &r.Snapshot.Replicas[i]
		if replica.Local.Reach != ag.ReachOK || replica.Local.Endpoint != ag.EndpointMissing {
			continue
		}
		err := s.with(ctx, r, replica.Name, createTimeout, func(ctx context.Context, c mssql.Conn) error {
			return s.makeEndpoint(ctx, r, replica, c)
		})
		if err != nil {
			return inReplica(replica.Name, err)
		}
	}
	return nil
}

func (s *Setup) makeEndpoint(ctx context.Context, r *Report, replica *ag.Replica, c mssql.Conn) error {
	facts, err := readTrust(ctx, c)
	if err != nil {
		return neverSent(err)
	}
	if !facts.masterKey {
		password, err := s.password()
		if err != nil {
			return err
		}
		if err := c.Exec(ctx, tsql.CreateMasterKey(password)); err != nil {
			return err
		}
	}
	now := s.Clock.Now().UTC()
	name := ownCertificate(facts, replica.Name)
	if name == "" {
		name = certificateName(replica.Name, now)
		start := now.AddDate(0, 0, -1) // clocks may differ
		if err := c.Exec(ctx, tsql.CreateCertificate(name, replica.Name, start, now.AddDate(certificateYears, 0, 0))); err != nil {
			return err
		}
	}
	address := replicaOf(r.Policy, replica.Name).URL
	port, err := portOf(address)
	if err != nil {
		return &ag.Error{Kind: ag.ErrGuard, Message: fmt.Sprintf("the endpoint URL %q of %s names no port: %v", address, replica.Name, err)}
	}
	return c.Exec(ctx, tsql.CreateEndpoint(tsql.Endpoint{
		Name: endpointName, Port: port, Certificate: name, Witness: replica.Local.Express,
	}))
}

// portOf is the port in TCP://host:port, at which the peers will look for the endpoint.
func portOf(endpointURL string) (int32, error) {
	u, err := url.Parse(endpointURL)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return int32(n), err
}

// password makes one that satisfies every policy and that nobody needs to know.
func (s *Setup) password() (string, error) {
	b := make([]byte, 24)
	if err := s.Random(b); err != nil {
		return "", &ag.Error{Kind: ag.ErrUnknown, Message: "make a random password: " + err.Error()}
	}
	return "Aa1!" + base64.RawURLEncoding.EncodeToString(b), nil
}

// endpointOwner is one server with what it offers to its peers.
type endpointOwner struct {
	replica *ag.Replica
	facts   trustFacts
	der     []byte
}

// exchangeTrust makes every server that answers trust the endpoint certificates of all
// others that answer. Only public parts travel. It is idempotent and cheap when all
// is there: two reads and a grant each.
func (s *Setup) exchangeTrust(ctx context.Context, r *Report) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	var owners []*endpointOwner
	for i := range r.Snapshot.Replicas {
		replica := &r.Snapshot.Replicas[i]
		if replica.Local.Reach != ag.ReachOK || replica.Local.Endpoint == ag.EndpointMissing {
			continue
		}
		if replica.Local.EndpointCertificate == "" {
			return &ag.Error{Kind: ag.ErrGuard, Message: replica.Name + ": its mirroring endpoint does not authenticate by certificate, or the login may not see it"}
		}
		o := &endpointOwner{replica: replica}
		err := s.with(ctx, r, replica.Name, statementTimeout, func(ctx context.Context, c mssql.Conn) error {
			var err error
			if o.facts, err = readTrust(ctx, c); err != nil {
				return err
			}
			results, err := c.Query(ctx, tsql.ExportCertificate(replica.Local.EndpointCertificate))
			if err != nil {
				return err
			}
			if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Row(0).Bytes(tsql.ExportedColumn)) == 0 {
				return &ag.Error{Kind: ag.ErrGuard, Message: "the public part of certificate " + replica.Local.EndpointCertificate + " cannot be read"}
			}
			o.der = results[0].Row(0).Bytes(tsql.ExportedColumn)
			return nil
		})
		if err != nil {
			return inReplica(replica.Name, neverSent(err))
		}
		owners = append(owners, o)
	}
	for _, o := range owners {
		batch := trustBatch(o, owners)
		if batch == "" {
			continue
		}
		err := s.with(ctx, r, o.replica.Name, statementTimeout, func(ctx context.Context, c mssql.Conn) error { return c.Exec(ctx, batch) })
		if err != nil {
			return inReplica(o.replica.Name, err)
		}
	}
	return nil
}

// trustBatch is what one server still has to do to trust all its peers.
func trustBatch(o *endpointOwner, owners []*endpointOwner) string {
	var batches []string
	for _, peer := range owners {
		if peer == o {
			continue
		}
		name := peer.replica.Local.EndpointCertificate
		mine := o.facts.find(name)
		var theirs []byte
		if c := peer.facts.find(name); c != nil {
			theirs = c.thumbprint
		}
		switch {
		case mine != nil && mine.private:
			// A certificate of our own with the peer's name cannot be replaced by it: leave it and be told by the connection.
		case mine != nil && !bytes.Equal(mine.thumbprint, theirs):
			batches = append(batches, tsql.DropTrust(name), tsql.TrustCertificate(name, peer.der, o.replica.Local.EndpointName))
		case mine == nil || !slices.ContainsFunc(o.facts.logins, func(l string) bool { return strings.EqualFold(l, name) }):
			batches = append(batches, tsql.TrustCertificate(name, peer.der, o.replica.Local.EndpointName))
		default: // a crash between login and grant leaves no other trace
			batches = append(batches, tsql.GrantConnect(o.replica.Local.EndpointName, name))
		}
	}
	return strings.Join(batches, "\n")
}

func inReplica(replica string, err error) error {
	e := *asSetupError(err)
	e.Message = replica + ": " + e.Message
	return &e
}

// certificateLife is used by readers of a snapshot: how long before its end an
// endpoint certificate is worth a warning.
const certificateLife = 30 * 24 * time.Hour

// CertificateExpires tells whether the endpoint certificate of a replica ends within 30 days.
func CertificateExpires(l ag.Local, now time.Time) bool {
	return !l.EndpointCertExpiry.IsZero() && l.EndpointCertExpiry.Sub(now) < certificateLife
}
