// Package managerapi is the protocol between an instance manager and those that
// ask it: the controller, the plugin with --direct, and the managers of the
// other replicas. It is JSON over HTTPS with client certificates on both sides,
// signed by the availability group's own authority (architecture.md §7).
//
// The certificate's common name is the speaker's name: a replica's name, or
// ControllerName. Host names and addresses are not looked at, so that a manager
// can be asked by pod address when names do not resolve.
//
//	GET  /v1/status    → ag.Manager
//	POST /v1/seal      SealRequest → SealAnswer         (controller only)
//	POST /v1/failsafe  FailsafeRequest → FailsafeAnswer (the named holder only)
//	POST /v1/seen      Seen → empty                     (replicas and controller)
package managerapi
