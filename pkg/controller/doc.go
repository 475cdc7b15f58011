// Package controller is the in-cluster part of the operator: it reconciles
// availability groups and standalone instances in phases. Each phase compares what
// desired/ builds with what is there; SQL Server is touched only through pkg/sql.
//
// The phases of a pass never depend on each other's memory: whatever a pass left
// undone, the next one finds by looking.
package controller
