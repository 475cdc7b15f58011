// Package tds is the server side of the Tabular Data Stream protocol: TDS 7.4 with the
// TLS handshake wrapped in PRELOGIN packets, and TDS 8.0 where TLS comes first
// (field guide §10).
//
// It knows no SQL. A [Handler] opens a [Session] for each login; the session receives
// batches and procedure calls and answers through a [Response]. The package owns
// everything between the socket and that seam: packets, PRELOGIN, LOGIN7, requests and
// their parameters, prepared statements, transaction manager requests, attention,
// connection reset, and the tokens of the reply.
//
// Input comes from the network and is never trusted: every length is checked against
// what is left and against a limit, and a malformed message ends the connection with an
// error, never the process.
package tds
