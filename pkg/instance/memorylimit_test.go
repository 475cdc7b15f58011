package instance

import (
	"os"
	"testing"
)

func TestMemoryLimit_StaysWithinWhatTheContainerHas(t *testing.T) {
	t.Parallel()
	const v1, v2 = "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"
	for name, c := range map[string]struct {
		files  map[string]string
		wanted int64
		want   int64
	}{
		"the pod is of the present spec":      {map[string]string{v2: "4294967296\n"}, 3276, 3276},
		"the pod is older, and has less":      {map[string]string{v2: "2147483648\n"}, 3276, 1638},
		"the pod is older, and has more":      {map[string]string{v2: "8589934592\n"}, 3276, 3276},
		"no limit":                            {map[string]string{v2: "max\n"}, 3276, 3276},
		"nothing is derived from a limit":     {map[string]string{v2: "2147483648\n"}, 0, 0},
		"cgroup v1":                           {map[string]string{v1: "2147483648\n"}, 3276, 1638},
		"cgroup v1 without a limit":           {map[string]string{v1: "9223372036854771712\n"}, 3276, 3276},
		"no cgroup":                           {nil, 3276, 3276},
		"what cannot be read is no limit":     {map[string]string{v2: "many\n"}, 3276, 3276},
		"a limit that leaves nothing is none": {map[string]string{v2: "1048576\n"}, 3276, 3276},
	} {
		read := func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}
		if got := ownMemoryLimit(c.wanted, read); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
