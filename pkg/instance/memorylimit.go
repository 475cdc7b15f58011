package instance

import (
	"strconv"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// noMemoryLimit is above what any machine has: cgroup v1 writes "none" as a huge number.
const noMemoryLimit = 1 << 50

// ownMemoryLimit keeps the server's limit within what this container has. The settings
// are those of the present spec; a pod that is older than it, and restarts before it is
// replaced, has less memory than they speak of.
func ownMemoryLimit(wanted int64, read func(string) ([]byte, error)) int64 {
	limit, ok := containerMemory(read)
	if !ok {
		return wanted
	}
	if own := v1alpha1.ServerMemoryMB(limit); own > 0 && own < wanted {
		return own
	}
	return wanted
}

// containerMemory is the container's own limit in bytes: of cgroup v2, else of v1.
func containerMemory(read func(string) ([]byte, error)) (int64, bool) {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := read(file)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil || n <= 0 || n >= noMemoryLimit {
			return 0, false // "max": there is none
		}
		return n, true
	}
	return 0, false
}
