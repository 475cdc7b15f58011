// Package instance is the instance manager: process 1 of the SQL Server
// container. It starts, watches, stops and, when it must, kills sqlservr; it
// holds the Lease and the write lease while its server is the primary
// (design: safety.md §2), keeps the commit rule (§4), answers its peers (§6),
// and serves probes and metrics.
//
//	prepare ──► starting ──► running ──► stopping ──► stopped
//	   │            │           │                        ▲
//	   └──► fenced ◄┴───────────┘  (server stopped, pod stays, until unfenced)
//
// A server that ends by itself ends the manager with the same exit code: the end
// of the container is the proof of death that the controller waits for (R8).
package instance
