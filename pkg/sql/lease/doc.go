// Package lease holds the instance manager's rules about authority: whether it may
// renew the Lease and SQL Server's write lease, when it must kill the server, what it
// answers to seals and failsafe questions, how it keeps the commit rule, and how it
// stops. It is pure: time is a parameter, nothing is read and nothing is sent.
//
// Every time in it is a time.Duration on the manager's own monotonic clock, except
// Instant.Wall, which is compared only with itself (R6).
//
// The State is a value; methods return the next one. Whoever drives it keeps one State
// under a mutex, and writes State.Persisted to the data volume, synced, before it lets
// an answer out whose State differs in it.
package lease
