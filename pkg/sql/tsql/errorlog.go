package tsql

import "strconv"

// ErrorLog reads one error log of the engine whole: 0 is the current one, 1 the one
// before. Columns LogDate, ProcessInfo, Text; needs securityadmin, or VIEW ANY ERROR
// LOG from 2022 on (FG 3.10).
func ErrorLog(archive int) string {
	return "EXEC sp_readerrorlog " + strconv.Itoa(max(archive, 0)) + ", 1;"
}
