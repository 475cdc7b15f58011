// Package observe takes one snapshot of an availability group: pods and nodes as the
// API server shows them, every server's own answer, what the primary says about the
// others, and what the instance managers say. All replicas are asked in parallel,
// each with its own deadline; a failure is data in the snapshot, never a reason to
// stop (safety.md §2, style of the loop).
package observe
