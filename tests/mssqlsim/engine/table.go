package engine

import (
	"iter"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// Row is the values of one row in column order. Rows are immutable once given to the engine.
type Row = []sqltypes.Value

// Column is one column of a table.
type Column struct {
	Name     string
	Type     sqltypes.Type
	Nullable bool
	Identity bool
	Seed     int64  // identity seed
	Step     int64  // identity increment
	Default  string // default expression text, evaluated by the executor; "" none
	// DefaultName is the name of the default constraint.
	DefaultName string
}

// Key is a primary key, unique constraint or index over columns, by ordinal.
type Key struct {
	Name      string
	Columns   []int
	Primary   bool
	Unique    bool
	Clustered bool
	Index     bool // made by CREATE INDEX, not a constraint
}

// Table is the definition of a user table. It is immutable once given to the engine.
type Table struct {
	ID      ObjectID
	Schema  string
	Name    string
	Columns []Column
	Keys    []Key
	Checks  []Check      // enforced by the executor
	Foreign []ForeignKey // enforced by the executor
}

// Check is a CHECK constraint by the text of its condition.
type Check struct{ Name, Text string }

// ForeignKey is a FOREIGN KEY constraint; columns by ordinal.
type ForeignKey struct {
	Name                string
	Columns             []int
	RefSchema, RefTable string
	RefColumns          []int
}

// Module is a stored definition by text: view, procedure, function, trigger.
type Module struct {
	ID     ObjectID
	Schema string
	Name   string
	Type   string // sys.objects.type: V, P, FN, TR
	Text   string
}

// LockMode is the strength of a table lock.
type LockMode uint8

// Lock modes; readers of committed rows take none.
const (
	LockShared LockMode = iota + 1
	LockExclusive
)

// RowSeq iterates rows with their ids in insertion order.
type RowSeq = iter.Seq2[RowID, Row]
