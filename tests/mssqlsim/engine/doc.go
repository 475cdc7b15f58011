// Package engine is the pure state machine of one simulated SQL Server instance: databases and
// their log, availability group replicas and configuration, transport, synchronisation, seeding,
// write lease, endpoints, certificates, logins, rights and the error log. It restates the
// behaviour that docs/reference describes (the "field guide", cited as FG with its section).
//
// An [Instance] is driven from outside. It starts no goroutine, does no I/O and reads no clock:
// every input carries the time, every output is an [Effect] that the host takes with
// [Instance.TakeEffects] and carries out in order. The same inputs and the same seed give the
// same effects. What must survive a kill is announced as [Persist] effects before any effect that
// depends on it; a [Disk] fed with these records reopens the instance.
//
// Blocking statements return a [WaitID]; a later [Complete] effect ends it. WaitID 0 means that
// the statement is finished already.
package engine
