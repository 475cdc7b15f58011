package engine

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID is a uniqueidentifier in text order; the zero GUID stands for "none".
type GUID [16]byte

// String is the upper-case form that SQL Server prints.
func (g GUID) String() string {
	h := strings.ToUpper(hex.EncodeToString(g[:]))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// IsZero tells whether g is the none GUID.
func (g GUID) IsZero() bool { return g == GUID{} }

// MarshalText writes the text form, so that GUIDs are readable in a snapshot and usable as keys.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads the text form.
func (g *GUID) UnmarshalText(b []byte) error {
	n, err := hex.Decode(g[:], []byte(strings.ReplaceAll(string(b), "-", "")))
	if err != nil || n != len(g) {
		return fmt.Errorf("read GUID %q: want 32 hex digits", b)
	}
	return nil
}

// LSN is a log sequence number in its numeric(25,0) display form: virtual log file * 10^15 +
// block * 10^5 + slot. Larger is later. 0 means none.
type LSN uint64

const (
	lsnBlock LSN = 100_000
	lsnVLF   LSN = 1_000_000_000_000_000
	firstLSN LSN = 37*lsnVLF + 8*lsnBlock + 1
)

// WaitID names a blocking statement; 0 means that there is nothing to wait for.
type WaitID uint64

// SessionID is a session's server process id (spid); user sessions start at 51.
type SessionID int

// LinkID names one endpoint connection between two instances, chosen by the host for accepted
// links and by the engine for those that it dials (see [Dial]).
type LinkID uint64

// RowID identifies a row inside its table for the life of the row.
type RowID int64

// DatabaseID is database_id: local to the instance. 1 master, 2 tempdb, 3 model, 4 msdb.
type DatabaseID int

// Ids of the system databases; user databases follow.
const (
	MasterID DatabaseID = 1
	TempDBID DatabaseID = 2
	ModelID  DatabaseID = 3
	MSDBID   DatabaseID = 4
)

// ObjectID is object_id of a table or module inside its database.
type ObjectID int

// PrincipalID is principal_id of a login (server) or user (database).
type PrincipalID int
