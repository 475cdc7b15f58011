package server

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// errorLog writes lines in the product's layout:
//
//	2026-11-29 23:05:07.12 Server      SQL Server is now ready for client connections.
type errorLog struct {
	mu sync.Mutex
	w  io.Writer // may be nil
}

func (l *errorLog) write(e engine.LogLine) { l.at(e.Time, e.Process, e.Text) }

// line writes a line of the host itself.
func (l *errorLog) line(process, text string) { l.at(time.Now(), process, text) }

func (l *errorLog) at(t time.Time, process, text string) {
	if l.w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.w, "%s %-11s %s\n", t.Local().Format("2006-01-02 15:04:05.00"), process, text)
}
