package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Local is a cluster on this machine.
type Local struct {
	options Options
	layout  layout
	begin   time.Time
	out     *sync.Mutex
}

func newLocal(o Options) *Local {
	return &Local{options: o, layout: layout{root: o.Root}, begin: time.Now(), out: &sync.Mutex{}}
}

// say prints one line of progress.
func (l *Local) say(format string, args ...any) {
	l.out.Lock()
	defer l.out.Unlock()
	fmt.Fprintf(l.options.Out, "[%4.0fs] %s\n", time.Since(l.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (l *Local) binaries() binaries { return binaries{cache: l.options.Cache, say: l.say} }

// Kubeconfig implements Cluster.
func (l *Local) Kubeconfig() string { return l.layout.kubeconfig() }

// Faults implements Cluster.
func (l *Local) Faults() Faults { return l }

// Kubectl is the path of a kubectl of the cluster's version.
func (l *Local) Kubectl() string { return l.binaries().path(kubernetesTools(), "kubectl") }

// session is one locked operation on a cluster.
type session struct {
	*Local
	state   *state
	plan    plan
	cgroups cgroups
	pki     *pki
	mu      sync.Mutex
}

// save writes the state; the caller owns it.
func (s *session) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.save(s.layout.state())
}

// lock keeps two operations on one cluster apart.
func (l *Local) lock(ctx context.Context) (func(), error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a local cluster makes network namespaces and mounts: run it as root, or set CLUSTER=kind")
	}
	return lockFile(ctx, l.layout.lock(), func() { l.say("waiting for another operation on the cluster %s", l.options.Name) })
}

// locked runs f on a cluster that is up.
func (l *Local) locked(ctx context.Context, f func(*session) error) error {
	notUp := fmt.Errorf("the cluster %s is not up: run up first", l.options.Name)
	// Without a cluster not even a lock is left behind.
	if _, err := os.Stat(l.layout.state()); errors.Is(err, fs.ErrNotExist) {
		return notUp
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := loadState(l.layout.state())
	if err != nil {
		return err
	}
	if st == nil {
		return notUp
	}
	s, err := l.session(st)
	if err != nil {
		return err
	}
	return f(s)
}

func (l *Local) session(st *state) (*session, error) {
	groups, err := readCgroups()
	if err != nil {
		return nil, err
	}
	authority, err := openPKI(l.layout.pki(), time.Now())
	if err != nil {
		return nil, err
	}
	return &session{
		Local: l, state: st, cgroups: groups, pki: authority,
		plan: plan{
			network: network{Name: l.options.Name, Octet: st.Octet}, ports: st.Ports,
			layout: l.layout, bins: l.binaries(),
		},
	}, nil
}

// Down implements Cluster. It needs no state: every name follows from the
// cluster's, and every process is in a cgroup of that name.
func (l *Local) Down(ctx context.Context) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.down(ctx); err != nil {
		return err
	}
	// The lock's file last, while the lock is held.
	if err := os.Remove(l.layout.lock()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the lock: %w", err)
	}
	// The shared parent goes when it was the last cluster.
	_ = os.Remove(filepath.Dir(l.options.Root))
	return nil
}

// down does the work of Down, for who has the lock.
func (l *Local) down(ctx context.Context) error {
	groups, err := readCgroups()
	if err != nil {
		return err
	}
	l.say("taking the cluster %s down", l.options.Name)
	if err := groups.kill(ctx, l.options.Name); err != nil {
		return err
	}
	var errs []error
	// The cgroup has all of them; the records are for a machine on which somebody
	// moved a process elsewhere.
	if st, err := loadState(l.layout.state()); err == nil && st != nil {
		if boot, err := bootID(); err == nil && boot == st.BootID {
			for _, p := range st.Processes {
				errs = append(errs, p.kill())
			}
		}
	}
	n := network{Name: l.options.Name}
	for i := 1; i <= maxNodes; i++ {
		errs = append(errs, deleteLink(ctx, n.nodeVeth(i)))
	}
	errs = append(errs, deleteLink(ctx, n.bridge()))
	errs = append(errs, groups.remove(ctx, l.options.Name))
	errs = append(errs, removeTree(l.options.Root))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take the cluster %s down: %w", l.options.Name, err)
	}
	l.say("nothing of the cluster %s is left", l.options.Name)
	return nil
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func deleteLink(ctx context.Context, name string) error {
	if !linkExists(name) {
		return nil
	}
	_, err := run(ctx, "", "ip", "link", "delete", name)
	if err != nil && !linkExists(name) {
		return nil
	}
	return err
}

// removeTree unmounts whatever is mounted below the directory, then deletes it.
// It deletes nothing while a mount is left, so that it never reaches through one.
func removeTree(root string) error {
	mounts, err := mountsBelow(root)
	if err != nil {
		return err
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := syscall.Unmount(mounts[i], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", mounts[i], err)
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("remove the cluster's files: %w", err)
	}
	return nil
}

// mountsBelow lists the mount points in or below the directory, outer ones first.
func mountsBelow(root string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	return parseMountsBelow(string(data), root), nil
}

// Logs implements Cluster.
func (l *Local) Logs(_ context.Context, component string, w io.Writer) error {
	file := l.layout.log(component)
	if !within(file, filepath.Join(l.layout.root, "log")) {
		return fmt.Errorf("%q is no component's name", component)
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no log of %q; status lists the components", component)
	}
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", component, err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("read the log of %s: %w", component, err)
	}
	return nil
}
