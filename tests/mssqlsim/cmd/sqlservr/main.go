// Command sqlservr is the process of the simulated SQL Server: the same paths, variables,
// ports, signals, exit codes and error log as the image's /opt/mssql/bin/sqlservr (field
// guide §7). It is a test tool and no part of the product.
//
// Beside the product's settings it knows knobs of its own, from the environment or from
// the file mssqlsim.env on the volume:
//
//	MSSQLSIM_ROOT           the volume; default /var/opt/mssql
//	MSSQLSIM_SERVER_NAME    instead of the host name
//	MSSQLSIM_VERSION        2017, 2019, 2022, 2025 or a full version; default 2022
//	MSSQLSIM_START_SECONDS  time until logins are accepted; default 1
//	MSSQLSIM_STOP_SECONDS   time that a clean stop takes; default 0
//	MSSQLSIM_DAC_PORT       port of the dedicated administrator connection on loopback; default 1434, 0 off
//	MSSQLSIM_MEMORY_MB      memory that the process believes to have
//	MSSQLSIM_SEED           seed of random choices; default from the clock
//	MSSQLSIM_WATCHDOG       1: a parent that watches and a child that serves, as the product
//	MSSQLSIM_TIME_SCALE     multiplies the times of role changes, recovery and seeding; default 1
//	MSSQLSIM_TIMINGS        Name=duration,… for single ones (engine.Timings)
//	MSSQLSIM_READINGS       Name=value,… for the readings of open points (engine.Readings)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // TZ has to work in an image without a zone database
)

func main() {
	syscall.Umask(0o007) // the volume belongs to the user and its group
	if isWatchdog(os.Getenv) {
		os.Exit(watch(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "sqlservr: ends with code %d\n", code)
	}
	os.Exit(code)
}
