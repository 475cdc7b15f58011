package tsql

import "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"

// The syntax tree. It is read-only after parsing and shared by all users of the batch cache.

// expr is a value or a condition.
type expr interface{}

type (
	litExpr struct{ v sqltypes.Value }
	varExpr struct {
		name string // lower case, with @
		line int
	}
	colExpr struct {
		qual []string // up to three qualifiers, outermost first
		name string
		line int
	}
	starExpr  struct{ qual []string }
	unaryExpr struct {
		op byte // - + ~
		x  expr
	}
	binExpr struct {
		op   byte // + - * / % & | ^
		l, r expr
	}
	cmpExpr struct {
		op   string // = <> < <= > >=
		l, r expr
		// quant is ALL or ANY when r is a subquery compared in that way.
		quant string
	}
	logicExpr struct {
		and  bool
		l, r expr
	}
	notExpr    struct{ x expr }
	isNullExpr struct {
		x   expr
		not bool
	}
	inExpr struct {
		x    expr
		list []expr
		q    *query
		not  bool
	}
	betweenExpr struct {
		x, lo, hi expr
		not       bool
	}
	likeExpr struct {
		x, pat, esc expr
		not         bool
	}
	existsExpr struct{ q *query }
	subExpr    struct{ q *query }
	caseExpr   struct {
		operand expr
		whens   []whenClause
		els     expr
	}
	whenClause struct{ cond, then expr }
	castExpr   struct {
		x     expr
		to    sqltypes.Type
		style expr
		try   bool
	}
	collateExpr struct {
		x    expr
		name string
	}
	funcExpr struct {
		schema   string // lower case, "" or "sys" or "dbo" …
		name     string // lower case
		args     []expr
		part     string // first argument of DATEADD and its like, lower case
		star     bool
		distinct bool
		within   []orderItem // WITHIN GROUP (ORDER BY …)
		over     *overClause
		line     int
	}
	overClause struct {
		partition []expr
		order     []orderItem
	}
	defaultExpr struct{} // DEFAULT in VALUES and SET
)

type orderItem struct {
	x    expr
	desc bool
}

// objName is a name of up to four parts.
type objName struct {
	server, db, schema, name string
	line                     int
}

func (o objName) String() string {
	s := o.name
	if o.schema != "" || o.db != "" {
		s = o.schema + "." + s
	}
	if o.db != "" {
		s = o.db + "." + s
	}
	if o.server != "" {
		s = o.server + "." + s
	}
	return s
}

// query is a query expression with its ORDER BY.
type query struct {
	with          []cte
	body          queryBody
	order         []orderItem
	offset, fetch expr
	line          int
}

type cte struct {
	name string
	cols []string
	q    *query
}

// queryBody is *selectBody, *setOp or *valuesBody.
type queryBody interface{}

type setOp struct {
	op   string // UNION, UNION ALL, EXCEPT, INTERSECT
	l, r queryBody
}

type valuesBody struct{ rows [][]expr }

type selectBody struct {
	distinct   bool
	top        expr
	topPercent bool
	withTies   bool
	items      []selectItem
	into       *objName
	from       []tableRef
	where      expr
	group      []expr
	having     expr
	line       int
}

type selectItem struct {
	x      expr
	alias  string
	assign string // @var = x
	op     byte   // compound assignment operator, 0 for =
}

// tableRef is *tableName, *tableVar, *derivedTable, *tableFunc or *joinRef.
type tableRef interface{}

type tableName struct {
	obj   objName
	alias string
}

type tableVar struct {
	name, alias string
	line        int
}

type derivedTable struct {
	q     *query
	alias string
	cols  []string
	line  int
}

type tableFunc struct {
	obj   objName
	args  []expr
	alias string
	cols  []string
}

type joinKind uint8

const (
	joinInner joinKind = iota
	joinLeft
	joinRight
	joinFull
	joinCross
	applyCross
	applyOuter
)

type joinRef struct {
	kind joinKind
	l, r tableRef
	on   expr
}

// stmt is one statement.
type stmt interface{}

// node is a statement with its position and extent in the batch.
type node struct {
	s    stmt
	line int
	text string // the statement's source
}

type (
	blockStmt struct{ body []node }
	ifStmt    struct {
		cond      expr
		then, els *node
	}
	whileStmt struct {
		cond expr
		body *node
	}
	breakStmt    struct{}
	continueStmt struct{}
	returnStmt   struct{ x expr }
	tryStmt      struct{ try, catch []node }
	throwStmt    struct{ number, msg, state expr }
	raiseStmt    struct {
		msg, severity, state expr
		args                 []expr
		nowait, log, seterr  bool
	}
	printStmt   struct{ x expr }
	waitforStmt struct {
		x    expr
		time bool
	}
	declareStmt struct{ vars []varDecl }
	varDecl     struct {
		name  string
		typ   sqltypes.Type
		table *tableDef
		init  expr
		line  int
	}
	setVarStmt struct {
		name string
		op   byte
		x    expr
		line int
	}
	setOptStmt struct {
		names []string
		value string // ON, OFF or the rest of the statement
	}
	useStmt    struct{ db string }
	selectStmt struct{ q *query }
	insertStmt struct {
		target  tableRef // *tableName or *tableVar
		cols    []string
		q       *query // VALUES and SELECT
		exec    *execStmt
		deflt   bool // DEFAULT VALUES
		output  *outputClause
		top     expr
		colLine int
	}
	updateStmt struct {
		target tableRef
		sets   []setClause
		from   []tableRef
		where  expr
		top    expr
		output *outputClause
		with   []cte
		line   int
	}
	setClause struct {
		col  string
		vari string
		op   byte
		x    expr
		line int
	}
	deleteStmt struct {
		target tableRef
		from   []tableRef
		where  expr
		top    expr
		output *outputClause
		with   []cte
		line   int
	}
	outputClause struct {
		items    []selectItem
		into     tableRef
		intoCols []string
	}
	truncateStmt struct{ obj objName }
	execStmt     struct {
		proc    objName
		procVar string // EXEC @name
		text    expr   // EXEC ('…')
		args    []execArg
		ret     string // EXEC @ret = …
		line    int
	}
	execArg struct {
		name   string
		x      expr
		output bool
		deflt  bool
	}
	tranStmt struct {
		op   string // BEGIN, COMMIT, ROLLBACK, SAVE
		name string
	}
	killStmt       struct{ x expr }
	shutdownStmt   struct{ nowait bool }
	checkpointStmt struct{}
	reconfigStmt   struct{}
	dbccStmt       struct {
		verb string
		args []expr
	}
	emptyStmt struct{}
)

// Table definitions.
type (
	tableDef struct {
		cols        []columnDef
		constraints []constraintDef
	}
	columnDef struct {
		name     string
		typ      sqltypes.Type
		notNull  bool
		nullable bool // said explicitly
		identity bool
		seed     int64
		step     int64
		deflt    expr
		dfltText string
		dfltName string
		check    string
		computed bool
		line     int
	}
	constraintDef struct {
		name      string
		kind      string // PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY, INDEX
		cols      []string
		clustered bool
		text      string // CHECK
		ref       objName
		refCols   []string
	}
	createTableStmt struct {
		obj objName
		def tableDef
	}
	dropObjectStmt struct {
		kind     string // TABLE, VIEW, PROCEDURE, FUNCTION, TRIGGER, INDEX, SCHEMA
		objs     []objName
		table    objName // DROP INDEX i ON t
		ifExists bool
	}
	alterTableStmt struct {
		obj         objName
		verb        string // ADD, DROP COLUMN, DROP CONSTRAINT, ALTER COLUMN
		cols        []columnDef
		constraints []constraintDef
		names       []string
		ifExists    bool
	}
	createIndexStmt struct {
		name      string
		table     objName
		unique    bool
		clustered bool
		cols      []string
	}
	createModuleStmt struct {
		kind   string // PROCEDURE, VIEW
		obj    objName
		params []procParam
		body   []node // PROCEDURE
		q      *query // VIEW
		cols   []string
		text   string
		orAlt  bool
		alter  bool
	}
	procParam struct {
		name   string
		typ    sqltypes.Type
		deflt  expr
		output bool
	}
	createSchemaStmt struct{ name, owner string }
)
