package engine

import (
	"sort"
	"time"
)

// ChangeOp is what one logical change does.
type ChangeOp uint8

// Operations of the log.
const (
	OpInsert ChangeOp = iota + 1
	OpUpdate
	OpDelete
	OpTruncate
	OpCreateTable
	OpAlterTable
	OpDropTable
	OpPutModule
	OpDropModule
	OpPutPrincipal
	OpDropPrincipal
	OpPutPermission
	OpDropPermission
	OpAddMember
	OpDropMember
	OpFork // first record of a new primary: the log continues on another branch
)

// Change is one logical change of a database. Which fields are set follows from Op.
type Change struct {
	Op         ChangeOp
	Object     ObjectID       `json:",omitempty"`
	Row        RowID          `json:",omitempty"`
	Values     Row            `json:",omitempty"`
	Identity   int64          `json:",omitempty"` // counter of the table after an insert
	Table      *Table         `json:",omitempty"`
	Module     *Module        `json:",omitempty"`
	Principal  *Principal     `json:",omitempty"`
	Permission *Permission    `json:",omitempty"`
	Member     *RoleMemberRow `json:",omitempty"`
	Fork       *Fork          `json:",omitempty"`
}

// LogRecord is one committed transaction in the log of a database. It is immutable.
type LogRecord struct {
	LSN     LSN
	Time    time.Time
	Bytes   int
	Changes []Change
}

// Fork is one branch of a log: a new one starts with each promotion, so that two copies can find
// the last record that they share. Forced ones are the recovery forks that FG 4.9 compares.
type Fork struct {
	ID     GUID
	Start  LSN // of its first record
	Before LSN // the last record of the branch that it continues
	Forced bool
}

func blocks(bytes int) LSN { return LSN((bytes + 511) / 512) }

// nextLSN is the number of the record that follows a record of the given size.
func nextLSN(l LSN, bytes int) LSN { return l + blocks(bytes)*lsnBlock }

func changeBytes(changes []Change) int {
	n := 120
	for i := range changes {
		n += 100
		for _, v := range changes[i].Values {
			n += 8 + len(v.Text())
		}
	}
	return n
}

// logTail holds the records after an image, in order.
type logTail []*LogRecord

// after is the index of the first record later than l.
func (t logTail) after(l LSN) int {
	if n := len(t); n == 0 || t[n-1].LSN <= l {
		return n
	}
	return sort.Search(len(t), func(i int) bool { return t[i].LSN > l })
}

// commonPoint is the last LSN that two logs share, given their forks and ends. ok is false when
// they have no branch in common.
func commonPoint(a []Fork, aEnd LSN, b []Fork, bEnd LSN) (LSN, bool) {
	n := 0
	for n < len(a) && n < len(b) && a[n].ID == b[n].ID {
		n++
	}
	if n == 0 {
		return 0, false
	}
	if n < len(a) {
		aEnd = min(aEnd, a[n].Before)
	}
	if n < len(b) {
		bEnd = min(bEnd, b[n].Before)
	}
	return min(aEnd, bEnd), true
}
