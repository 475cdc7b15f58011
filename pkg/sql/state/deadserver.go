package state

import (
	"fmt"
	"os"
)

// Seconds without a frame after which a connection to the API server is asked whether it
// is alive, and how long it has for an answer. client-go waits 30 and 15 s otherwise: of
// several API servers the loss of the one that a process talks to would cost it all the
// time in which it has to renew a Lease.
const (
	idleSeconds = "3"
	pingSeconds = "2"
)

// NoticeDeadAPIServer makes every client of this process give up a connection to an API
// server that went silent after five seconds, and connect anew. It is to be called before
// the first client is made. What the environment says already stands.
func NoticeDeadAPIServer() error {
	for name, value := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": idleSeconds, "HTTP2_PING_TIMEOUT_SECONDS": pingSeconds} {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
