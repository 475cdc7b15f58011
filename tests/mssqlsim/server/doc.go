// Package server runs one simulated SQL Server instance in real time: the engine behind a
// mutex and timers, its write-ahead log on a volume, TDS listeners for clients, and the
// endpoint transport to other instances over mutual TLS.
//
// An effect is released only when every record before it is on the disk, so a kill at any
// point loses nothing that a client or a peer was told.
//
// [Start] runs an instance; [StartCluster] runs several in one process on loopback, for
// tests.
package server
