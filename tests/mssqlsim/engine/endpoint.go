package engine

import "time"

// mirroringEndpointID is the endpoint_id of the first user endpoint.
const mirroringEndpointID = 65536

// CreateEndpoint is CREATE ENDPOINT: 7862 second mirroring endpoint (FG 2.1).
func (in *Instance) CreateEndpoint(now time.Time, id SessionID, e EndpointSpec) error {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "CREATE ENDPOINT") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.srv.Endpoint != nil {
		return msg(7862, 16, 1, "An endpoint of the requested type already exists. Only one endpoint of this type is supported. Use ALTER ENDPOINT or DROP the existing endpoint and execute the CREATE ENDPOINT statement.")
	}
	n := &MirroringEndpoint{ID: mirroringEndpointID, Name: e.Name, Owner: s.login, State: EndpointStopped, Role: 3, Encryption: true}
	if e.Port == nil || *e.Port < 1 || *e.Port > 65535 {
		return msg(102, 15, 1, "Incorrect syntax near 'LISTENER_PORT'.")
	}
	if err := in.fillEndpoint(s, n, e); err != nil {
		return err
	}
	if in.cfg.Edition == editionExpress && n.Role != 2 {
		return msg(7878, 16, 1, "This \"CREATE ENDPOINT\" statement is not supported on this edition of SQL Server.")
	}
	if n.State == EndpointStarted {
		n.Restarts = 1
	}
	in.changeServer(func(st *ServerState) { st.Endpoint = n })
	in.listen()
	return nil
}

func (in *Instance) fillEndpoint(s *session, n *MirroringEndpoint, e EndpointSpec) error {
	if e.Certificate != nil {
		c := in.certificate(*e.Certificate)
		if c == nil || !in.maySeeCertificate(s, c) {
			return cannotFind("certificate", *e.Certificate)
		}
		if len(c.Key) == 0 {
			return msg(15297, 16, 1, "The certificate, asymmetric key, or private key data is invalid.")
		}
		n.Certificate = c.ID
	}
	set(&n.State, e.State)
	set(&n.Port, e.Port)
	set(&n.IP, e.IP)
	set(&n.Role, e.Role)
	set(&n.Encryption, e.Encryption)
	return nil
}

func (in *Instance) mayAlterEndpoint(s *session, e *MirroringEndpoint) bool {
	return e.Owner == s.login || in.can(s, "ALTER ANY ENDPOINT") || in.canOn(s, ClassEndpoint, foldName(e.Name), "ALTER")
}

// AlterEndpoint is ALTER ENDPOINT. STOPPED closes all links; a change of the certificate reconnects.
func (in *Instance) AlterEndpoint(now time.Time, id SessionID, e EndpointSpec) error {
	in.begin(now)
	s := in.session(id)
	o := in.srv.Endpoint
	if o == nil || !equalName(o.Name, e.Name) || !in.mayAlterEndpoint(s, o) {
		return cannotFind("endpoint", e.Name)
	}
	n := *o
	if err := in.fillEndpoint(s, &n, e); err != nil {
		return err
	}
	if n.State == EndpointStarted && o.State != EndpointStarted {
		n.Restarts++
	}
	moved := n.Certificate != o.Certificate || n.Port != o.Port || n.IP != o.IP || n.State != EndpointStarted
	if moved && o.State == EndpointStarted {
		in.emit(Listen{Port: o.Port, IP: o.IP})
		in.closeAllLinks("the endpoint was stopped")
		if n.State != EndpointStarted {
			in.log(35204, s.process(), "The connection between server instances has been disabled because the database mirroring endpoint was either disabled or stopped. Restart the endpoint by using the ALTER ENDPOINT Transact-SQL statement with STATE = STARTED.")
		}
	}
	in.changeServer(func(st *ServerState) { st.Endpoint = &n })
	if moved || o.State != EndpointStarted {
		in.listen()
	}
	if n.State == EndpointStarted && (o.State != EndpointStarted || moved) {
		in.dialAll()
	}
	return nil
}

// DropEndpoint is DROP ENDPOINT.
func (in *Instance) DropEndpoint(now time.Time, id SessionID, name string) error {
	in.begin(now)
	s := in.session(id)
	o := in.srv.Endpoint
	if o == nil || !equalName(o.Name, name) || !in.mayAlterEndpoint(s, o) {
		return cannotFind("endpoint", name)
	}
	if o.State == EndpointStarted {
		in.emit(Listen{Port: o.Port, IP: o.IP})
		in.closeAllLinks("the endpoint was dropped")
	}
	in.changeServer(func(st *ServerState) {
		st.Endpoint = nil
		kept := st.Permissions[:0]
		for _, p := range st.Permissions {
			if p.Class != ClassEndpoint || p.Object != foldName(name) {
				kept = append(kept, p)
			}
		}
		st.Permissions = kept
	})
	return nil
}

// listen opens the endpoint's listener if it is started.
func (in *Instance) listen() {
	if e := in.srv.Endpoint; e != nil && e.State == EndpointStarted {
		in.emit(Listen{Port: e.Port, IP: e.IP, Open: true})
		in.log(26022, "Server", "Server is listening on [ %s <ipv4> %d].", orText(e.IP, "'any'"), e.Port)
	}
}

// EndpointIdentity is the certificate and key that the mirroring endpoint offers; ok is false while
// there is no started endpoint with a usable certificate.
func (in *Instance) EndpointIdentity() (KeyPair, bool) {
	e := in.srv.Endpoint
	if e == nil || e.State != EndpointStarted {
		return KeyPair{}, false
	}
	c := in.certificateByID(e.Certificate)
	if c == nil || len(c.Key) == 0 {
		return KeyPair{}, false
	}
	return KeyPair{DER: c.DER, PKCS8: c.Key}, true
}

// Endpoints is sys.endpoints, the TSQL ones included.
func (in *Instance) Endpoints(now time.Time, id SessionID) []EndpointRow {
	in.begin(now)
	s := in.session(id)
	row := func(id int, name string, protocol uint8, protocolDesc string, admin bool, port int) EndpointRow {
		return EndpointRow{Name: name, ID: id, PrincipalID: 1, Protocol: protocol, ProtocolDesc: protocolDesc, Type: 2, TypeDesc: "TSQL",
			StateDesc: "STARTED", IsAdmin: admin, Port: port}
	}
	l := []EndpointRow{
		row(1, "Dedicated Admin Connection", 2, "TCP", true, 0),
		row(2, "TSQL Local Machine", 4, "SHARED_MEMORY", false, 0),
		row(3, "TSQL Named Pipes", 3, "NAMED_PIPES", false, 0),
		row(4, "TSQL Default TCP", 2, "TCP", false, 0),
		row(5, "TSQL Default VIA", 5, "VIA", false, 0),
	}
	e := in.srv.Endpoint
	if e == nil || !in.can(s, "VIEW ANY DEFINITION") && !in.mayAlterEndpoint(s, e) && !in.canOn(s, ClassEndpoint, foldName(e.Name), "CONNECT", "VIEW DEFINITION") {
		return l
	}
	return append(l, EndpointRow{Name: e.Name, ID: e.ID, PrincipalID: e.Owner, Protocol: 2, ProtocolDesc: "TCP", Type: 4, TypeDesc: "DATABASE_MIRRORING",
		State: uint8(e.State), StateDesc: [...]string{"STARTED", "STOPPED", "DISABLED"}[e.State], Port: e.Port, IPAddress: e.IP,
		Role: e.Role, RoleDesc: [...]string{"NONE", "PARTNER", "WITNESS", "ALL"}[e.Role], IsEncryptionEnabled: e.Encryption,
		ConnectionAuth: 4, ConnectionAuthDesc: "CERTIFICATE", CertificateID: e.Certificate, EncryptionAlgorithm: 2, EncryptionAlgorithmDesc: "AES"})
}

// TCPListeners is sys.dm_tcp_listener_states.
func (in *Instance) TCPListeners(now time.Time, id SessionID) ([]ListenerStateRow, error) {
	in.begin(now)
	if err := in.viewState(in.session(id)); err != nil {
		return nil, err
	}
	l := []ListenerStateRow{{ListenerID: 1, IPAddress: "::", Port: in.cfg.TCPPort, TypeDesc: "TSQL", StateDesc: "ONLINE", StartTime: in.started}}
	if e := in.srv.Endpoint; e != nil && e.State == EndpointStarted {
		l = append(l, ListenerStateRow{ListenerID: 2, IPAddress: orText(e.IP, "0.0.0.0"), IsIPv4: true, Port: e.Port, Type: 2, TypeDesc: "DATABASE_MIRRORING",
			StateDesc: "ONLINE", StartTime: in.started})
	}
	return l, nil
}
