// Package state maps between the API objects and the vocabulary of pkg/sql/ag: the
// Lease is the authority (safety.md §2), the custom resource's spec is the policy,
// its status holds the memory.
package state
