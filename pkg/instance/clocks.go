//go:build linux

package instance

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// clocks reads both of the machine's clocks at one moment. Only the monotonic one
// counts for leases; the wall clock is compared with it to notice jumps (R6).
type clocks interface {
	now() lease.Instant
}

// machineClocks are the real ones, Mono counted from the machine's start.
type machineClocks struct{}

func (machineClocks) now() lease.Instant {
	var mono, wall unix.Timespec
	// CLOCK_BOOTTIME, not Go's monotonic clock: a machine that was suspended must find its proofs old.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &mono); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	}
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall) // fails for an unknown clock only
	return lease.Instant{Mono: time.Duration(mono.Nano()), Wall: time.Unix(wall.Unix())}
}
