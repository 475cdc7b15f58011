package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func (p *parser) createStatement() stmt {
	start := p.i
	p.expect("CREATE")
	orAlter := p.acceptSeq("OR", "ALTER")
	switch {
	case p.is("PROC", "PROCEDURE"):
		return p.procedure(start, orAlter, false)
	case p.is("VIEW"):
		return p.view(start, orAlter, false)
	case orAlter:
		p.failHere()
	case p.accept("TABLE"):
		s := &createTableStmt{obj: p.object()}
		s.def = p.tableDefinition()
		if p.accept("ON") {
			p.name()
		}
		p.tableOptions()
		return s
	case p.is("UNIQUE", "CLUSTERED", "NONCLUSTERED", "INDEX"):
		return p.createIndex()
	case p.accept("SCHEMA"):
		s := &createSchemaStmt{name: p.name()}
		if p.accept("AUTHORIZATION") {
			s.owner = p.name()
		}
		return s
	case p.accept("DATABASE"):
		return p.createDatabase()
	case p.acceptSeq("AVAILABILITY", "GROUP"):
		return p.createGroup()
	case p.accept("LOGIN"):
		return p.createLogin()
	case p.accept("USER"):
		return p.createUser()
	case p.acceptSeq("SERVER", "ROLE"):
		return p.createRole(true)
	case p.accept("ROLE"):
		return p.createRole(false)
	case p.acceptSeq("MASTER", "KEY"):
		s := &masterKeyStmt{verb: "CREATE"}
		if p.acceptSeq("ENCRYPTION", "BY", "PASSWORD") {
			p.expect("=")
			s.password = p.str()
		}
		return s
	case p.accept("CERTIFICATE"):
		return p.createCertificate()
	case p.accept("ENDPOINT"):
		return p.createEndpoint()
	case p.accept("CREDENTIAL"):
		return p.credential("CREATE")
	}
	p.failHere()
	return nil
}

func (p *parser) alterStatement() stmt {
	start := p.i
	p.expect("ALTER")
	switch {
	case p.is("PROC", "PROCEDURE"):
		return p.procedure(start, false, true)
	case p.is("VIEW"):
		return p.view(start, false, true)
	case p.accept("TABLE"):
		return p.alterTable()
	case p.accept("DATABASE"):
		return p.alterDatabase()
	case p.acceptSeq("AVAILABILITY", "GROUP"):
		return p.alterGroup()
	case p.accept("LOGIN"):
		return p.alterLogin()
	case p.acceptSeq("SERVER", "ROLE"):
		return p.alterRole(true)
	case p.accept("ROLE"):
		return p.alterRole(false)
	case p.acceptSeq("MASTER", "KEY"):
		return p.alterMasterKey()
	case p.accept("ENDPOINT"):
		return p.alterEndpoint()
	case p.accept("CREDENTIAL"):
		return p.credential("ALTER")
	}
	p.failHere()
	return nil
}

func (p *parser) dropStatement() stmt {
	p.expect("DROP")
	ifExists := func() bool { return p.acceptSeq("IF", "EXISTS") }
	switch {
	case p.is("TABLE", "VIEW", "PROC", "PROCEDURE", "FUNCTION", "TRIGGER"):
		s := &dropObjectStmt{kind: p.next().kw}
		if s.kind == "PROC" {
			s.kind = "PROCEDURE"
		}
		s.ifExists = ifExists()
		for {
			s.objs = append(s.objs, p.object())
			if !p.accept(",") {
				return s
			}
		}
	case p.accept("INDEX"):
		s := &dropObjectStmt{kind: "INDEX"}
		s.ifExists = ifExists()
		s.objs = []objName{p.object()}
		if p.accept("ON") {
			s.table = p.object()
		} else {
			s.table = s.objs[0]
			s.table.name, s.table.schema, s.table.db = s.objs[0].schema, s.objs[0].db, ""
		}
		return s
	case p.accept("SCHEMA"):
		s := &dropObjectStmt{kind: "SCHEMA"}
		s.ifExists = ifExists()
		s.objs = []objName{p.object()}
		return s
	case p.accept("DATABASE"):
		s := &dropDatabaseStmt{ifExists: ifExists()}
		for {
			s.names = append(s.names, p.name())
			if !p.accept(",") {
				return s
			}
		}
	case p.acceptSeq("AVAILABILITY", "GROUP"):
		return &dropGroupStmt{name: p.name()}
	case p.accept("LOGIN"):
		s := &dropLoginStmt{}
		s.name = p.name()
		return s
	case p.accept("USER"):
		s := &dropUserStmt{ifExists: ifExists()}
		s.name = p.name()
		return s
	case p.acceptSeq("SERVER", "ROLE"):
		return &roleStmt{server: true, drop: true, name: p.name()}
	case p.accept("ROLE"):
		s := &roleStmt{drop: true, ifExists: ifExists()}
		s.name = p.name()
		return s
	case p.acceptSeq("MASTER", "KEY"):
		return &masterKeyStmt{verb: "DROP"}
	case p.accept("CERTIFICATE"):
		return &dropCertStmt{name: p.name()}
	case p.accept("ENDPOINT"):
		return &dropEndpointStmt{name: p.name()}
	case p.accept("CREDENTIAL"):
		return &credentialStmt{verb: "DROP", name: p.name()}
	}
	p.failHere()
	return nil
}

// tableDefinition is the parenthesised list of columns and constraints.
func (p *parser) tableDefinition() tableDef {
	p.expect("(")
	var d tableDef
	for {
		if p.is("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "INDEX") {
			d.constraints = append(d.constraints, p.tableConstraint())
		} else {
			d.cols = append(d.cols, p.columnDefinition(&d.constraints))
		}
		if !p.accept(",") {
			break
		}
		if p.is(")") {
			break
		}
	}
	p.expect(")")
	return d
}

func (p *parser) columnDefinition(cons *[]constraintDef) columnDef {
	c := columnDef{line: p.peek().line}
	c.name = p.name()
	if p.accept("AS") {
		p.failAt(p.toks[p.i-1], 156, 15, 1, "Incorrect syntax near the keyword '%s'.", "AS")
	}
	c.typ = p.typeName(1)
	name := ""
	for {
		switch {
		case p.accept("NULL"):
			c.nullable = true
		case p.acceptSeq("NOT", "NULL"):
			c.notNull = true
		case p.accept("IDENTITY"):
			c.identity, c.seed, c.step = true, 1, 1
			if p.accept("(") {
				c.seed = p.signedInteger()
				p.expect(",")
				c.step = p.signedInteger()
				p.expect(")")
			}
		case p.accept("CONSTRAINT"):
			name = p.name()
			continue
		case p.accept("DEFAULT"):
			c.dfltName = name
			start := p.i
			c.deflt = p.value()
			c.dfltText = p.source(start)
		case p.accept("COLLATE"):
			p.name()
		case p.is("PRIMARY", "UNIQUE"):
			k := constraintDef{name: name, kind: "UNIQUE", cols: []string{c.name}}
			if p.accept("PRIMARY") {
				p.expect("KEY")
				k.kind, k.clustered = "PRIMARY KEY", true
				c.notNull = true
			} else {
				p.i++
			}
			p.clustering(&k)
			p.indexOptions()
			*cons = append(*cons, k)
		case p.accept("CHECK"):
			*cons = append(*cons, constraintDef{name: name, kind: "CHECK", text: p.checkText(), cols: []string{c.name}})
		case p.is("REFERENCES"), p.isSeq("FOREIGN", "KEY"):
			p.acceptSeq("FOREIGN", "KEY")
			k := constraintDef{name: name, kind: "FOREIGN KEY", cols: []string{c.name}}
			p.references(&k)
			*cons = append(*cons, k)
		case p.accept("ROWGUIDCOL"), p.accept("SPARSE"):
		default:
			return c
		}
		name = ""
	}
}

func (p *parser) signedInteger() int64 {
	neg := p.accept("-")
	n := p.integer()
	if neg {
		return -n
	}
	return n
}

func (p *parser) clustering(k *constraintDef) {
	if p.accept("CLUSTERED") {
		k.clustered = true
	} else if p.accept("NONCLUSTERED") {
		k.clustered = false
	}
}

// indexOptions passes WITH (…) and ON filegroup of an index.
func (p *parser) indexOptions() {
	if p.is("WITH") && p.peekAt(1).kw == "(" {
		p.i++
		p.skipParens()
	}
	if p.is("ON") && (p.peekAt(1).kw == "PRIMARY" || p.peekAt(1).kind == tokQuoted) {
		p.i += 2
	}
}

func (p *parser) tableOptions() {
	for p.is("TEXTIMAGE_ON") {
		p.i++
		p.name()
	}
	if p.is("WITH") && p.peekAt(1).kw == "(" {
		p.i++
		p.skipParens()
	}
}

// checkText passes ( condition ) and gives its text.
func (p *parser) checkText() string {
	start := p.i
	p.expect("(")
	p.condition()
	p.expect(")")
	return p.source(start)
}

// references parses REFERENCES t (columns); the actions CASCADE and SET are outside of the subset.
func (p *parser) references(k *constraintDef) {
	p.expect("REFERENCES")
	k.ref = p.object()
	if p.accept("(") {
		k.refCols = p.nameList()
	}
	for p.accept("ON") {
		p.expectOneOf("DELETE", "UPDATE")
		p.expect("NO", "ACTION")
	}
}

func (p *parser) tableConstraint() constraintDef {
	var k constraintDef
	if p.accept("CONSTRAINT") {
		k.name = p.name()
	}
	switch {
	case p.acceptSeq("PRIMARY", "KEY"):
		k.kind, k.clustered = "PRIMARY KEY", true
		p.clustering(&k)
		k.cols = p.indexColumns()
		p.indexOptions()
	case p.accept("UNIQUE"):
		k.kind = "UNIQUE"
		p.clustering(&k)
		k.cols = p.indexColumns()
		p.indexOptions()
	case p.accept("INDEX"):
		k.kind = "INDEX"
		k.name = p.name()
		if p.accept("UNIQUE") {
			k.kind = "UNIQUE"
		}
		p.clustering(&k)
		k.cols = p.indexColumns()
		p.indexOptions()
	case p.accept("CHECK"):
		k.kind = "CHECK"
		k.text = p.checkText()
	case p.acceptSeq("FOREIGN", "KEY"):
		k.kind = "FOREIGN KEY"
		k.cols = p.indexColumns()
		p.references(&k)
	default:
		p.failHere()
	}
	return k
}

func (p *parser) indexColumns() []string {
	p.expect("(")
	var l []string
	for {
		l = append(l, p.name())
		if !p.accept("ASC") {
			p.accept("DESC")
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return l
}

func (p *parser) createIndex() stmt {
	s := &createIndexStmt{unique: p.accept("UNIQUE")}
	s.clustered = p.accept("CLUSTERED")
	if !s.clustered {
		p.accept("NONCLUSTERED")
	}
	p.expect("INDEX")
	s.name = p.name()
	p.expect("ON")
	s.table = p.object()
	s.cols = p.indexColumns()
	if p.accept("INCLUDE") {
		p.skipParens()
	}
	if p.accept("WHERE") {
		p.failNear(p.toks[p.i-1])
	}
	p.indexOptions()
	return s
}

func (p *parser) alterTable() stmt {
	s := &alterTableStmt{obj: p.object()}
	if p.acceptSeq("WITH", "CHECK") || p.acceptSeq("WITH", "NOCHECK") {
		if !p.is("ADD") {
			p.failHere()
		}
	}
	switch {
	case p.accept("ADD"):
		s.verb = "ADD"
		for {
			if p.is("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN") && !(p.is("CONSTRAINT") && p.peekAt(2).kw == "DEFAULT") {
				s.constraints = append(s.constraints, p.tableConstraint())
			} else if p.is("CONSTRAINT", "DEFAULT") {
				c := columnDef{line: p.peek().line}
				if p.accept("CONSTRAINT") {
					c.dfltName = p.name()
				}
				p.expect("DEFAULT")
				start := p.i
				c.deflt = p.value()
				c.dfltText = p.source(start)
				p.expect("FOR")
				c.name = p.name()
				s.verb = "ADD DEFAULT"
				s.cols = append(s.cols, c)
			} else {
				s.cols = append(s.cols, p.columnDefinition(&s.constraints))
			}
			if !p.accept(",") {
				return s
			}
		}
	case p.accept("DROP"):
		s.verb = "DROP CONSTRAINT"
		if p.accept("COLUMN") {
			s.verb = "DROP COLUMN"
		} else {
			p.accept("CONSTRAINT")
		}
		s.ifExists = p.acceptSeq("IF", "EXISTS")
		for {
			s.names = append(s.names, p.name())
			if !p.accept(",") {
				return s
			}
		}
	case p.acceptSeq("ALTER", "COLUMN"):
		s.verb = "ALTER COLUMN"
		s.cols = append(s.cols, p.columnDefinition(&s.constraints))
		return s
	}
	p.failHere()
	return nil
}

// procedure parses CREATE or ALTER PROCEDURE; the body runs to the end of the batch.
func (p *parser) procedure(start int, orAlter, alter bool) stmt {
	if start != 0 {
		p.failAt(p.toks[start], 111, 15, 1, "'CREATE/ALTER PROCEDURE' must be the first statement in a query batch.")
	}
	p.i++
	s := &createModuleStmt{kind: "PROCEDURE", orAlt: orAlter, alter: alter, obj: p.object()}
	paren := p.accept("(")
	for p.peek().kind == tokVar {
		q := procParam{name: strings.ToLower(p.next().val)}
		p.declare(q.name)
		p.accept("AS")
		q.typ = p.typeName(1)
		if p.accept("=") {
			neg := p.accept("-")
			l, ok := p.literal()
			switch {
			case !ok:
				l = &litExpr{sqltypes.NewNVarChar(p.name())}
				q.deflt = l
			case neg:
				q.deflt = &unaryExpr{op: '-', x: l}
			default:
				q.deflt = l
			}
		}
		q.output = p.accept("OUTPUT") || p.accept("OUT")
		p.accept("READONLY")
		s.params = append(s.params, q)
		if !p.accept(",") {
			break
		}
	}
	if paren {
		p.expect(")")
	}
	if p.accept("WITH") {
		for {
			if p.acceptSeq("EXECUTE", "AS") || p.acceptSeq("EXEC", "AS") {
				p.nameOrString()
			} else {
				p.expect("RECOMPILE")
			}
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect("AS")
	for {
		for p.accept(";") {
		}
		if p.peek().kind == tokEOF {
			break
		}
		s.body = append(s.body, p.statement(false))
	}
	if len(s.body) == 0 {
		p.failHere()
	}
	s.text = strings.TrimSpace(p.src)
	return s
}

func (p *parser) view(start int, orAlter, alter bool) stmt {
	if start != 0 {
		p.failAt(p.toks[start], 111, 15, 1, "'CREATE VIEW' must be the first statement in a query batch.")
	}
	p.i++
	s := &createModuleStmt{kind: "VIEW", orAlt: orAlter, alter: alter, obj: p.object()}
	if p.accept("(") {
		s.cols = p.nameList()
	}
	if p.accept("WITH") {
		p.expectOneOf("SCHEMABINDING", "ENCRYPTION", "VIEW_METADATA")
	}
	p.expect("AS")
	var with []cte
	if p.is("WITH") {
		with = p.ctes()
	}
	s.q = p.queryAfterWith(with)
	p.accept(";")
	if p.peek().kind != tokEOF {
		p.failHere()
	}
	s.text = strings.TrimSpace(p.src)
	return s
}
