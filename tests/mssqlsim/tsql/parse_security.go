package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// createLogin parses what follows CREATE LOGIN (FG 2.1, 7.6).
func (p *parser) createLogin() stmt {
	s := &createLoginStmt{}
	s.spec.Name = p.name()
	if p.accept("FROM") {
		switch p.expectOneOf("CERTIFICATE", "WINDOWS") {
		case "CERTIFICATE":
			s.spec.Certificate = ptr(p.name())
		default:
			s.windows = true
		}
		return s
	}
	p.expect("WITH", "PASSWORD", "=")
	s.spec.Password = ptr(p.str())
	p.accept("MUST_CHANGE")
	for p.accept(",") {
		if p.accept("SID") {
			p.expect("=")
			s.spec.SID = p.binary()
			continue
		}
		p.loginOption(&s.spec)
	}
	return s
}

func (p *parser) loginOption(l *engine.LoginSpec) {
	t := p.next()
	p.expect("=")
	switch t.kw {
	case "DEFAULT_DATABASE":
		l.DefaultDatabase = ptr(p.name())
	case "DEFAULT_LANGUAGE", "CREDENTIAL":
		p.name()
	case "CHECK_POLICY":
		l.CheckPolicy = ptr(p.onOff())
	case "CHECK_EXPIRATION":
		p.onOff()
	default:
		p.failNear(t)
	}
}

func (p *parser) alterLogin() stmt {
	s := &alterLoginStmt{}
	s.spec.Name = p.name()
	switch {
	case p.accept("ENABLE"):
		s.spec.Disabled = ptr(false)
		return s
	case p.accept("DISABLE"):
		s.spec.Disabled = ptr(true)
		return s
	}
	p.expect("WITH")
	for {
		switch {
		case p.isSeq("PASSWORD", "="):
			p.i += 2
			s.spec.Password = ptr(p.str())
			for {
				if p.acceptSeq("OLD_PASSWORD", "=") {
					s.spec.OldPassword = ptr(p.str())
				} else if !p.accept("UNLOCK") && !p.accept("MUST_CHANGE") {
					break
				}
			}
		case p.isSeq("NAME", "="):
			p.i += 2
			s.spec.NewName = ptr(p.name())
		default:
			p.loginOption(&s.spec)
		}
		if !p.accept(",") {
			return s
		}
	}
}

func (p *parser) createUser() stmt {
	s := &createUserStmt{name: p.name()}
	s.login = s.name
	switch {
	case p.acceptSeq("FOR", "LOGIN"), p.acceptSeq("FROM", "LOGIN"):
		s.login = p.name()
	case p.acceptSeq("WITHOUT", "LOGIN"):
		s.login = ""
	}
	if p.accept("WITH") {
		for {
			p.expectOneOf("DEFAULT_SCHEMA", "DEFAULT_LANGUAGE")
			p.expect("=")
			p.name()
			if !p.accept(",") {
				break
			}
		}
	}
	return s
}

func (p *parser) createRole(server bool) stmt {
	s := &roleStmt{server: server, name: p.name()}
	if p.accept("AUTHORIZATION") {
		p.name()
	}
	return s
}

func (p *parser) alterRole(server bool) stmt {
	s := &roleMemberStmt{server: server, role: p.name()}
	s.add = p.expectOneOf("ADD", "DROP") == "ADD"
	p.expect("MEMBER")
	s.member = p.name()
	return s
}

// grantStatement parses GRANT, DENY and REVOKE (FG 1.8, 2.4, 7.6).
func (p *parser) grantStatement() stmt {
	s := &grantStmt{}
	switch p.next().kw {
	case "DENY":
		s.spec.Verb = engine.Deny
	case "REVOKE":
		s.spec.Verb = engine.Revoke
		p.acceptSeq("GRANT", "OPTION", "FOR")
	}
	for {
		var words []string
		for !p.is(",", "ON", "TO", "FROM", "(") {
			t := p.peek()
			if t.kind != tokIdent {
				p.failHere()
			}
			p.i++
			words = append(words, t.kw)
		}
		if len(words) == 0 {
			p.failHere()
		}
		if p.is("(") {
			p.skipParens()
		}
		s.spec.Permissions = append(s.spec.Permissions, strings.Join(words, " "))
		if !p.accept(",") {
			break
		}
	}
	if p.accept("ON") {
		p.securable(&s.spec)
	}
	if s.spec.Verb == engine.Revoke {
		p.expectOneOf("TO", "FROM")
	} else {
		p.expect("TO")
	}
	for {
		if p.accept("PUBLIC") {
			s.spec.To = append(s.spec.To, "public")
		} else {
			s.spec.To = append(s.spec.To, p.name())
		}
		if !p.accept(",") {
			break
		}
	}
	if p.acceptSeq("WITH", "GRANT", "OPTION") {
		s.spec.WithGrantOption = true
	}
	p.accept("CASCADE")
	if p.accept("AS") {
		p.name()
	}
	return s
}

func (p *parser) securable(g *engine.GrantSpec) {
	for _, c := range [...]engine.SecurableClass{
		engine.ClassGroup, engine.ClassServer, engine.ClassDatabase, engine.ClassEndpoint, engine.ClassLogin,
		engine.ClassCertificate, engine.ClassObject, engine.ClassSchema,
	} {
		words := append(strings.Fields(string(c)), "::")
		if p.acceptSeq(words...) {
			g.Class = c
			break
		}
	}
	if g.Class == "" {
		if p.peekAt(1).kw == "::" {
			p.failHere()
		}
		g.Class = engine.ClassObject
	}
	if g.Class != engine.ClassObject {
		g.Object = p.name()
		return
	}
	o := p.object()
	g.Object = o.name
	if o.schema != "" {
		g.Object = o.schema + "." + o.name
	}
}

func (p *parser) alterMasterKey() stmt {
	s := &masterKeyStmt{verb: "REGENERATE"}
	switch {
	case p.is("REGENERATE"), p.isSeq("FORCE", "REGENERATE"):
		p.accept("FORCE")
		p.expect("REGENERATE", "WITH", "ENCRYPTION", "BY", "PASSWORD", "=")
		s.password = p.str()
	case p.is("ADD", "DROP"):
		s.verb = p.next().kw + " ENCRYPTION"
		p.expect("ENCRYPTION", "BY")
		if p.acceptSeq("SERVICE", "MASTER", "KEY") {
			return s
		}
		p.expect("PASSWORD", "=")
		s.password = p.str()
	default:
		p.failHere()
	}
	return s
}

// masterKeyStatement parses OPEN and CLOSE MASTER KEY.
func (p *parser) masterKeyStatement() stmt {
	s := &masterKeyStmt{verb: p.next().kw}
	p.expect("MASTER", "KEY")
	if s.verb == "OPEN" {
		p.expect("DECRYPTION", "BY", "PASSWORD", "=")
		s.password = p.str()
	}
	return s
}

// createCertificate parses what follows CREATE CERTIFICATE (FG 2.1).
func (p *parser) createCertificate() stmt {
	s := &createCertStmt{line: p.peek().line}
	s.spec.Name = p.name()
	if p.accept("AUTHORIZATION") {
		s.spec.Authorization = p.name()
	}
	if p.accept("FROM") {
		if p.accept("FILE") {
			p.expect("=")
			s.file = p.str()
		} else {
			p.expect("BINARY", "=")
			s.spec.DER = p.binary()
		}
		if p.acceptSeq("WITH", "PRIVATE", "KEY") {
			p.expect("(")
			for {
				switch p.expectOneOf("FILE", "BINARY", "DECRYPTION", "ENCRYPTION") {
				case "FILE":
					p.expect("=")
					s.keyFile = p.str()
				case "BINARY":
					p.expect("=")
					s.spec.PrivateKey = p.binary()
				case "DECRYPTION":
					p.expect("BY", "PASSWORD", "=")
					s.spec.Password = p.str()
				default:
					p.expect("BY", "PASSWORD", "=")
					s.spec.EncryptBy = p.str()
				}
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
		}
	} else {
		if p.acceptSeq("ENCRYPTION", "BY", "PASSWORD") {
			p.expect("=")
			s.spec.EncryptBy = p.str()
		}
		p.expect("WITH", "SUBJECT", "=")
		s.spec.Subject = p.str()
		for p.accept(",") {
			switch p.expectOneOf("START_DATE", "EXPIRY_DATE") {
			case "START_DATE":
				p.expect("=")
				s.start = p.str()
			default:
				p.expect("=")
				s.expiry = p.str()
			}
		}
	}
	if p.acceptSeq("ACTIVE", "FOR", "BEGIN_DIALOG") {
		p.expect("=")
		p.onOff()
	}
	return s
}

func (p *parser) backupCertificate() stmt {
	s := &backupCertStmt{name: p.name()}
	p.expect("TO", "FILE", "=")
	s.file = p.str()
	if p.acceptSeq("WITH", "PRIVATE", "KEY") {
		p.expect("(")
		for {
			switch p.expectOneOf("FILE", "ENCRYPTION", "DECRYPTION") {
			case "FILE":
				p.expect("=")
				s.keyFile = p.str()
			case "ENCRYPTION":
				p.expect("BY", "PASSWORD", "=")
				s.password = p.str()
			default:
				p.expect("BY", "PASSWORD", "=")
				s.decryption = p.str()
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		if s.keyFile == "" || s.password == "" {
			p.failNear(p.toks[p.i-1])
		}
	}
	return s
}

func (p *parser) endpointState() *engine.EndpointState {
	switch p.expectOneOf("STARTED", "STOPPED", "DISABLED") {
	case "STARTED":
		return ptr(engine.EndpointStarted)
	case "STOPPED":
		return ptr(engine.EndpointStopped)
	}
	return ptr(engine.EndpointDisabled)
}

// createEndpoint parses what follows CREATE ENDPOINT (FG 2.1).
func (p *parser) createEndpoint() stmt {
	s := &createEndpointStmt{}
	s.spec.Name = p.name()
	if p.accept("AUTHORIZATION") {
		p.name()
	}
	if p.acceptSeq("STATE", "=") {
		s.spec.State = p.endpointState()
	}
	p.endpointTCP(&s.spec)
	p.endpointMirroring(&s.spec)
	return s
}

func (p *parser) alterEndpoint() stmt {
	s := &alterEndpointStmt{}
	s.spec.Name = p.name()
	done := false
	if p.acceptSeq("STATE", "=") {
		s.spec.State = p.endpointState()
		done = true
	}
	if p.is("AS") {
		p.endpointTCP(&s.spec)
		done = true
	}
	if p.is("FOR") {
		p.endpointMirroring(&s.spec)
		done = true
	}
	if !done {
		p.failHere()
	}
	return s
}

func (p *parser) endpointTCP(e *engine.EndpointSpec) {
	p.expect("AS", "TCP", "(")
	for {
		switch p.expectOneOf("LISTENER_PORT", "LISTENER_IP") {
		case "LISTENER_PORT":
			p.expect("=")
			e.Port = ptr(int(min(p.integer(), 1<<20)))
		default:
			p.expect("=")
			if p.accept("ALL") {
				e.IP = ptr("")
				break
			}
			p.expect("(")
			if t := p.peek(); t.kind == tokString {
				p.i++
				e.IP = ptr(t.val)
			} else {
				start := p.i
				for p.peek().kind == tokNumber {
					p.i++
				}
				e.IP = ptr(strings.TrimSpace(p.source(start)))
			}
			p.expect(")")
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
}

func (p *parser) endpointMirroring(e *engine.EndpointSpec) {
	p.expect("FOR")
	p.expectOneOf("DATABASE_MIRRORING", "DATA_MIRRORING")
	p.expect("(")
	for {
		switch p.expectOneOf("AUTHENTICATION", "ENCRYPTION", "ROLE") {
		case "AUTHENTICATION":
			p.expect("=")
			if p.accept("WINDOWS") {
				if p.is("NEGOTIATE", "NTLM", "KERBEROS") {
					p.i++
				}
				if p.accept("CERTIFICATE") {
					e.Certificate = ptr(p.name())
				} else {
					e.Certificate = ptr("")
				}
				break
			}
			p.expect("CERTIFICATE")
			e.Certificate = ptr(p.name())
			if p.accept("WINDOWS") && p.is("NEGOTIATE", "NTLM", "KERBEROS") {
				p.i++
			}
		case "ENCRYPTION":
			p.expect("=")
			e.Encryption = ptr(p.expectOneOf("DISABLED", "SUPPORTED", "REQUIRED") != "DISABLED")
			if p.accept("ALGORITHM") {
				p.expectOneOf("AES", "RC4")
				if p.is("AES", "RC4") {
					p.i++
				}
			}
		default:
			p.expect("=")
			switch p.expectOneOf("PARTNER", "WITNESS", "ALL") {
			case "PARTNER":
				e.Role = ptr(uint8(1))
			case "WITNESS":
				e.Role = ptr(uint8(2))
			default:
				e.Role = ptr(uint8(3))
			}
		}
		if !p.accept(",") && p.is(")") {
			break
		}
	}
	p.expect(")")
}

func (p *parser) credential(verb string) stmt {
	s := &credentialStmt{verb: verb, name: p.name()}
	p.expect("WITH", "IDENTITY", "=")
	s.identity = p.str()
	if p.accept(",") {
		p.expect("SECRET", "=")
		s.secret = p.str()
	}
	return s
}

// device list of BACKUP and RESTORE: DISK | URL = 'x' [, …].
func (p *parser) devices() (l []expr, urls bool) {
	for {
		urls = p.expectOneOf("DISK", "URL") == "URL"
		p.expect("=")
		if t := p.peek(); t.kind == tokVar {
			p.i++
			l = append(l, &varExpr{name: p.use(t, false), line: t.line})
		} else {
			v := p.str()
			l = append(l, strLit(v))
		}
		if !p.accept(",") {
			return l, urls
		}
	}
}

// databaseOrVar is the database of BACKUP and RESTORE.
func (p *parser) databaseOrVar() expr {
	if t := p.peek(); t.kind == tokVar {
		p.i++
		return &varExpr{name: p.use(t, false), line: t.line}
	}
	return strLit(p.name())
}

// optionValue passes "= value" of an option that only matters to the product's I/O.
func (p *parser) optionValue() {
	if p.accept("=") {
		t := p.next()
		if t.kind == tokEOF || t.kind == tokOp {
			p.failNear(t)
		}
	}
}

func (p *parser) backupStatement() stmt {
	p.expect("BACKUP")
	if p.accept("CERTIFICATE") {
		return p.backupCertificate()
	}
	s := &backupStmt{}
	if p.expectOneOf("DATABASE", "LOG") == "LOG" {
		s.spec.Kind = engine.BackupLog
	}
	s.nameVar = p.databaseOrVar()
	p.expect("TO")
	s.devices, s.urls = p.devices()
	if !p.accept("WITH") {
		return s
	}
	for {
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		p.i++
		switch t.kw {
		case "COPY_ONLY":
			s.spec.CopyOnly = true
		case "DIFFERENTIAL":
			if s.spec.Kind == engine.BackupLog {
				p.failNear(t)
			}
			s.spec.Kind = engine.BackupDifferential
		case "NAME":
			p.expect("=")
			if p.peek().kind == tokVar {
				p.i++
			} else {
				s.spec.Name = p.str()
			}
		case "INIT", "FORMAT":
			s.init = true
		case "NOINIT", "NOFORMAT", "SKIP", "NOSKIP", "COMPRESSION", "NO_COMPRESSION", "CHECKSUM", "NO_CHECKSUM",
			"STOP_ON_ERROR", "CONTINUE_AFTER_ERROR", "REWIND", "NOREWIND", "UNLOAD", "NOUNLOAD", "NO_TRUNCATE",
			"DESCRIPTION", "MEDIANAME", "MEDIADESCRIPTION", "STATS", "MAXTRANSFERSIZE", "BUFFERCOUNT", "BLOCKSIZE",
			"EXPIREDATE", "RETAINDAYS", "BACKUP_OPTIONS", "RESTART", "CREDENTIAL":
			p.optionValue()
		default:
			p.failAt(t, 155, 15, 1, "'%s' is not a recognized BACKUP option.", t.text)
		}
		if !p.accept(",") {
			return s
		}
	}
}

func (p *parser) restoreStatement() stmt {
	p.expect("RESTORE")
	s := &restoreStmt{}
	s.kind = p.expectOneOf("DATABASE", "LOG", "HEADERONLY", "FILELISTONLY", "LABELONLY", "VERIFYONLY")
	if s.kind == "DATABASE" || s.kind == "LOG" {
		s.db = p.databaseOrVar()
		if p.accept("FROM") {
			s.devices, s.urls = p.devices()
		}
	} else {
		p.expect("FROM")
		s.devices, s.urls = p.devices()
	}
	if !p.accept("WITH") {
		return s
	}
	for {
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		p.i++
		switch t.kw {
		case "REPLACE":
			s.opts.replace = true
		case "RECOVERY":
			s.opts.recovery = true
		case "NORECOVERY":
			s.opts.noRecovery = true
		case "STANDBY":
			p.expect("=")
			s.opts.standby = p.str()
		case "STOPAT":
			p.expect("=")
			s.opts.stopAt = p.value()
		case "MOVE":
			from := p.str()
			p.expect("TO")
			s.opts.moves = append(s.opts.moves, [2]string{from, p.str()})
		case "FILE":
			p.expect("=")
			s.opts.file = p.integer()
		case "CHECKSUM", "NO_CHECKSUM", "STATS", "RESTART", "MEDIANAME", "MAXTRANSFERSIZE", "BUFFERCOUNT", "BLOCKSIZE",
			"RESTORE_OPTIONS", "CREDENTIAL", "KEEP_REPLICATION", "RESTRICTED_USER", "NOUNLOAD", "UNLOAD", "REWIND", "NOREWIND",
			"STOP_ON_ERROR", "CONTINUE_AFTER_ERROR", "LOADHISTORY":
			p.optionValue()
		default:
			p.failAt(t, 155, 15, 1, "'%s' is not a recognized RESTORE option.", t.text)
		}
		if !p.accept(",") {
			return s
		}
	}
}
