// Package agops is the availability group's cluster manager: the one place where it
// is made, steered and repaired. [Engine.Step] is one pass of the loop
//
//	observe → decide → persist → execute → record
//
// and its three drivers are the controller's work queue, the plugin in the
// foreground, and tests in virtual time. What to do is decided in pkg/sql/decide and
// in the plan of [Setup] (both pure); here it is carried out, one guarded batch at a
// time, each with its own expiry in the server's clock (R5). Nothing here polls or
// waits for an effect: the next pass sees it.
package agops
