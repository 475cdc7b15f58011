// Package change is what all verbs that change an availability group have in common: the
// plan screen and the ladder of questions, a patch that is refused when the group is no
// longer what its user saw, watching until it is done, time-out and Ctrl-C that end the
// watching and never the operation, and one document a run.
//
// A verb loads the group, judges it, asks, patches and follows:
//
//	call.Load → (verb's own checks) → call.Ask(plan) → call.Patch → call.Follow → call.Finish
package change
