package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroups are the machine's cgroup hierarchies: several of version 1, or the one
// of version 2.
type cgroups struct {
	// v1 maps a controller ("freezer", "name=systemd") to its mount point; a
	// hierarchy with several controllers stands under each.
	v1 map[string]string
	// v2 is the unified hierarchy's mount point, used when there is no v1. Beside
	// v1 it holds no process limits, but runc makes its directories there too.
	v2 string
}

// readCgroups finds the hierarchies in /proc/self/mountinfo.
func readCgroups() (cgroups, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return cgroups{}, fmt.Errorf("find the cgroups: %w", err)
	}
	defer f.Close()
	return parseCgroups(f)
}

func parseCgroups(r io.Reader) (cgroups, error) {
	g := cgroups{v1: map[string]string{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		l, rest := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(rest) < 3 {
			continue
		}
		switch rest[0] {
		case "cgroup":
			for _, o := range strings.Split(rest[2], ",") {
				switch o {
				case "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids",
					"hugetlb", "net_cls", "net_prio", "perf_event", "rdma", "misc", "name=systemd":
					if _, seen := g.v1[o]; !seen {
						g.v1[o] = l[4]
					}
				}
			}
		case "cgroup2":
			g.v2 = l[4]
		}
	}
	if err := lines.Err(); err != nil {
		return g, fmt.Errorf("read the mounts: %w", err)
	}
	if len(g.v1) == 0 && g.v2 == "" {
		return g, errors.New("no cgroup hierarchy is mounted: a kubelet cannot run here")
	}
	return g, nil
}

// mounts are the hierarchies to use, each once, in a fixed order.
func (g cgroups) mounts() []string {
	if len(g.v1) == 0 {
		return []string{g.v2}
	}
	var out []string
	for _, m := range g.v1 {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}

// dirs are the directories of one cgroup, such as "kmssql/node1".
func (g cgroups) dirs(path string) []string {
	var out []string
	for _, m := range g.mounts() {
		out = append(out, filepath.Join(m, path))
	}
	return out
}

// allDirs are those that may exist for one cgroup, whoever made them.
func (g cgroups) allDirs(path string) []string {
	out := g.dirs(path)
	if len(g.v1) > 0 && g.v2 != "" {
		out = append(out, filepath.Join(g.v2, path))
	}
	return out
}

// create makes the cgroup in every hierarchy and returns its directories.
func (g cgroups) create(path string) ([]string, error) {
	for _, m := range g.mounts() {
		dir := m
		for _, part := range strings.Split(path, "/") {
			if len(g.v1) == 0 {
				if err := delegateAll(dir); err != nil {
					return nil, err
				}
			}
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("make the cgroup %s: %w", path, err)
			}
			if m == g.v1["cpuset"] {
				// A cpuset of version 1 starts empty and takes no process.
				for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
					if err := inheritCpuset(parent, dir, file); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return g.dirs(path), nil
}

func inheritCpuset(parent, dir, file string) error {
	own, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return fmt.Errorf("set up the cpuset: %w", err)
	}
	if strings.TrimSpace(string(own)) != "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(parent, file))
	if err != nil {
		return fmt.Errorf("set up the cpuset: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
		return fmt.Errorf("set up the cpuset: %w", err)
	}
	return nil
}

// delegateAll lets the children of a version 2 cgroup use every controller that
// it has itself.
func delegateAll(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("delegate the controllers of %s: %w", dir, err)
	}
	for _, c := range strings.Fields(string(data)) {
		// One at a time: a controller that cannot be delegated (cpu with real-time
		// processes) must not keep the others away; the kubelet names what it lacks.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
	return nil
}

// pids are the processes of the cgroup and of all below, each once.
func (g cgroups) pids(path string) ([]int, error) {
	seen := map[int]bool{}
	for _, dir := range g.allDirs(path) {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			if !d.IsDir() {
				return nil
			}
			data, err := os.ReadFile(filepath.Join(p, "cgroup.procs"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.EOPNOTSUPP) {
				return err
			}
			for _, f := range strings.Fields(string(data)) {
				// 0 stands for a process of another pid namespace.
				if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
					seen[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the processes of the cgroup %s: %w", path, err)
		}
	}
	var out []int
	for pid := range seen {
		out = append(out, pid)
	}
	slices.Sort(out)
	return out, nil
}

// kill ends every process of the cgroup, frozen or not, and waits for it.
func (g cgroups) kill(ctx context.Context, path string) error {
	killed := map[int]process{}
	err := waitFor(ctx, 30*time.Second, "the end of the processes of "+path, nil, func(context.Context) error {
		pids, err := g.pids(path)
		if err != nil {
			return err
		}
		alive := 0
		for _, pid := range pids {
			s, err := procStat(pid)
			if err != nil {
				continue
			}
			killed[pid] = process{Name: path, PID: pid, Start: s.start}
			if !killed[pid].alive() {
				continue
			}
			alive++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill pid %d: %w", pid, err)
			}
		}
		// The signal waits for a frozen process; thawed it dies before it runs.
		if err := g.thawTree(path); err != nil {
			return err
		}
		if alive > 0 {
			return fmt.Errorf("%d processes are left", alive)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// A dead process shows until its parent, init for most, has asked for its
	// result. An init that never asks must not hold us up.
	_ = waitFor(ctx, 5*time.Second, "init", nil, func(context.Context) error {
		for _, p := range killed {
			if start, err := startTime(p.PID); err == nil && start == p.Start {
				return fmt.Errorf("pid %d is a zombie", p.PID)
			}
		}
		return nil
	})
	return ctx.Err()
}

// freeze stops or continues every process of the cgroup at once.
func (g cgroups) freeze(path string, frozen bool) error {
	file, word := "", ""
	switch {
	case g.v1["freezer"] != "":
		file, word = filepath.Join(g.v1["freezer"], path, "freezer.state"), "THAWED"
		if frozen {
			word = "FROZEN"
		}
	case g.v2 != "":
		file, word = filepath.Join(g.v2, path, "cgroup.freeze"), "0"
		if frozen {
			word = "1"
		}
	default:
		return errors.New("the machine has no cgroup freezer")
	}
	err := os.WriteFile(file, []byte(word), 0o644)
	if errors.Is(err, fs.ErrNotExist) && !frozen {
		return nil
	}
	if err != nil {
		return fmt.Errorf("freeze or thaw %s: %w", path, err)
	}
	return nil
}

// thawTree thaws the cgroup and every one below: a thawed parent does not thaw a
// child that was frozen by itself.
func (g cgroups) thawTree(path string) error {
	mount := g.v1["freezer"]
	if mount == "" {
		mount = g.v2
	}
	top := filepath.Join(mount, path)
	err := filepath.WalkDir(top, func(dir string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(mount, dir)
		if err != nil {
			return err
		}
		return g.freeze(rel, false)
	})
	if err != nil {
		return fmt.Errorf("thaw all of %s: %w", path, err)
	}
	return nil
}

// frozen tells whether all processes of the cgroup have stopped.
func (g cgroups) frozen(path string) (bool, error) {
	if g.v1["freezer"] != "" {
		data, err := os.ReadFile(filepath.Join(g.v1["freezer"], path, "freezer.state"))
		if err != nil {
			return false, fmt.Errorf("read the freezer of %s: %w", path, err)
		}
		return strings.TrimSpace(string(data)) == "FROZEN", nil
	}
	data, err := os.ReadFile(filepath.Join(g.v2, path, "cgroup.events"))
	if err != nil {
		return false, fmt.Errorf("read the freezer of %s: %w", path, err)
	}
	return strings.Contains(string(data), "frozen 1"), nil
}

// remove takes the cgroup and all below away; it must be empty of processes.
func (g cgroups) remove(ctx context.Context, path string) error {
	// A cgroup stays busy for a moment after its last process has gone.
	return waitFor(ctx, 20*time.Second, "the removal of the cgroup "+path, nil, func(context.Context) error {
		var errs []error
		for _, dir := range g.allDirs(path) {
			var found []string
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil {
					if errors.Is(err, fs.ErrNotExist) {
						return nil
					}
					return err
				}
				if d.IsDir() {
					found = append(found, p)
				}
				return nil
			})
			errs = append(errs, err)
			for _, p := range slices.Backward(found) {
				if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, fmt.Errorf("remove the cgroup: %w", err))
				}
			}
		}
		return errors.Join(errs...)
	})
}
