// Package ag is the vocabulary of an availability group: what is observed, what
// is decided, what is recorded. It is pure: standard library only, no clock, no
// I/O. One word per idea; the words are SQL Server's.
package ag
