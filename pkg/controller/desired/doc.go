// Package desired builds the Kubernetes objects of an availability group or a
// standalone instance. It is pure: the same resource gives the same objects,
// without a clock, a client or random values; what is random (passwords, keys)
// is a parameter.
package desired
