package main

import (
	"os"
	"strconv"
	"strings"
)

// minMemoryMB is what the product needs to start (field guide §7.1).
const minMemoryMB = 2000

// memoryMB is what the container may use: the smaller of its cgroup's limit and the
// machine's memory; 0 if neither is known.
func memoryMB(read func(string) ([]byte, error)) int {
	best := int64(0)
	take := func(n int64) {
		if n > 0 && (best == 0 || n < best) {
			best = n
		}
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := read(name); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
				take(n >> 20)
			}
		}
	}
	if b, err := read("/proc/meminfo"); err == nil {
		for line := range strings.SplitSeq(string(b), "\n") {
			if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
					take(n >> 10)
				}
			}
		}
	}
	return int(best)
}

func machineMemoryMB() int { return memoryMB(os.ReadFile) }
