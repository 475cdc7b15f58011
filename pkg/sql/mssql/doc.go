// Package mssql talks TDS to one SQL Server: it is the only importer of the driver.
// A [Conn] is one session; every call has the caller's deadline and keeps it, also
// against a server that accepts connections and then says nothing (FG 6, a stopped
// process still completes TCP accept). Every failure is an *ag.Error.
package mssql
