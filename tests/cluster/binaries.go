package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Versions of what is built from source.
const (
	kubernetesVersion  = "v1.36.3"
	corednsVersion     = "v1.15.0"
	provisionerVersion = "v6.4.0"
	resizerVersion     = "v2.3.0"
)

// toolset is one Go module to build binaries from, in a generated module of its
// own, so that its requirements and ours do not meet.
type toolset struct {
	// name and version name its directory in the cache.
	name, version string
	// module is the module's path.
	module string
	// binaries maps a file name to a package; "." is the generated main package.
	binaries map[string]string
	// main is the source of the generated main package; may be empty.
	main string
	// ldflags come after "-s -w".
	ldflags string
}

func kubernetesTools() toolset {
	const v, cmd = "k8s.io/component-base/version", "k8s.io/kubernetes/cmd/"
	minor := strings.Split(kubernetesVersion, ".")[1]
	return toolset{
		name: "kubernetes", version: kubernetesVersion, module: "k8s.io/kubernetes",
		binaries: map[string]string{
			"kube-apiserver": cmd + "kube-apiserver", "kube-controller-manager": cmd + "kube-controller-manager",
			"kube-scheduler": cmd + "kube-scheduler", "kubelet": cmd + "kubelet",
			"kube-proxy": cmd + "kube-proxy", "kubectl": cmd + "kubectl",
		},
		ldflags: fmt.Sprintf("-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s", v, kubernetesVersion, v, v, minor),
	}
}

func corednsTools() toolset {
	var imports strings.Builder
	// The whole CoreDNS links the client libraries of three clouds; these are all
	// the plugins that the Corefile names.
	for _, p := range []string{"bind", "cache", "errors", "kubernetes", "ready"} {
		fmt.Fprintf(&imports, "\t_ \"github.com/coredns/coredns/plugin/%s\"\n", p)
	}
	return toolset{
		name: "coredns", version: corednsVersion, module: "github.com/coredns/coredns",
		binaries: map[string]string{"coredns": "."},
		main: "package main\n\nimport (\n\t\"github.com/coredns/coredns/coremain\"\n" + imports.String() +
			")\n\nfunc main() { coremain.Run() }\n",
	}
}

func provisionerTools() toolset {
	const module = "github.com/kubernetes-csi/external-provisioner/v6"
	return toolset{
		name: "external-provisioner", version: provisionerVersion, module: module,
		binaries: map[string]string{"csi-provisioner": module + "/cmd/csi-provisioner"},
	}
}

func resizerTools() toolset {
	const module = "github.com/kubernetes-csi/external-resizer/v2"
	return toolset{
		name: "external-resizer", version: resizerVersion, module: module,
		binaries: map[string]string{"csi-resizer": module + "/cmd/csi-resizer"},
	}
}

// binaries knows where the built binaries are and builds the missing ones.
type binaries struct {
	cache string
	say   func(format string, args ...any)
}

func (b binaries) path(t toolset, name string) string {
	return filepath.Join(b.cache, t.name+"-"+t.version, "bin", name)
}

// ensure builds the named binaries of the toolset that the cache lacks, in the
// given order. Two runs at once build nothing twice.
func (b binaries) ensure(ctx context.Context, t toolset, names ...string) error {
	missing := func() []string {
		var out []string
		for _, n := range names {
			if _, err := os.Stat(b.path(t, n)); err != nil {
				out = append(out, n)
			}
		}
		return out
	}
	if len(missing()) == 0 {
		return nil
	}
	dir := filepath.Join(b.cache, t.name+"-"+t.version)
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return fmt.Errorf("make the cache of %s: %w", t.name, err)
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"), func() {
		b.say("waiting for another run that builds %s", t.name)
	})
	if err != nil {
		return err
	}
	defer unlock()
	todo := missing()
	if len(todo) == 0 {
		return nil
	}
	if err := b.generate(ctx, t, dir); err != nil {
		return err
	}
	for i, n := range todo {
		if err := b.build(ctx, t, dir, n, fmt.Sprintf("%d of %d", i+1, len(todo))); err != nil {
			return err
		}
	}
	return nil
}

// generate writes the go.mod (and main.go) of the toolset's own module.
func (b binaries) generate(ctx context.Context, t toolset, dir string) error {
	b.say("fetching the source of %s %s", t.name, t.version)
	out, err := goCommand(ctx, dir, nil, "mod", "download", "-json", t.module+"@"+t.version)
	if err != nil {
		return fmt.Errorf("fetch %s %s: %w", t.module, t.version, err)
	}
	var got struct{ GoMod, Dir string }
	if err := json.Unmarshal(out, &got); err != nil {
		return fmt.Errorf("fetch %s: read the answer of go mod download: %w", t.module, err)
	}
	text, err := goCommand(ctx, dir, nil, "mod", "edit", "-json", got.GoMod)
	if err != nil {
		return fmt.Errorf("read the go.mod of %s: %w", t.module, err)
	}
	mod, err := generatedModule(t, text)
	if err != nil {
		return err
	}
	if err := writeFileAtomic(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	// The module's own checksums spare most look-ups of the checksum database.
	sums, err := os.ReadFile(filepath.Join(got.Dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the go.sum of %s: %w", t.module, err)
	}
	if err := writeFileAtomic(filepath.Join(dir, "go.sum"), sums, 0o644); err != nil {
		return err
	}
	if t.main == "" {
		return nil
	}
	return writeFileAtomic(filepath.Join(dir, "main.go"), []byte(t.main), 0o644)
}

// generatedModule renders the go.mod: the module's own requirements, and for
// each staging module that it replaces by a path the published version.
func generatedModule(t toolset, goMod []byte) (string, error) {
	var m struct {
		Go      string
		Require []struct{ Path, Version string }
		Replace []struct {
			Old struct{ Path, Version string }
			New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(goMod, &m); err != nil {
		return "", fmt.Errorf("read the go.mod of %s: %w", t.module, err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "module binaries\n\ngo %s\n\nrequire %s %s\n", m.Go, t.module, t.version)
	staging := strings.Replace(t.version, "v1.", "v0.", 1)
	for _, r := range m.Require {
		v := r.Version
		if t.module == "k8s.io/kubernetes" && v == "v0.0.0" {
			v = staging
		}
		fmt.Fprintf(&s, "require %s %s // indirect\n", r.Path, v)
	}
	for _, r := range m.Replace {
		switch {
		case t.module == "k8s.io/kubernetes" && strings.HasPrefix(r.New.Path, "./staging/"):
			fmt.Fprintf(&s, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, staging)
		case r.New.Version != "":
			fmt.Fprintf(&s, "replace %s => %s %s\n", strings.TrimSpace(r.Old.Path+" "+r.Old.Version), r.New.Path, r.New.Version)
		}
	}
	return s.String(), nil
}

// build compiles one binary beside its place and renames it.
func (b binaries) build(ctx context.Context, t toolset, dir, name, count string) error {
	begin := time.Now()
	b.say("building %s %s (%s)", name, t.version, count)
	stop := b.stillBusy(name, begin)
	defer stop()
	tmp := filepath.Join(dir, "bin", "."+name+".new")
	_, err := goCommand(ctx, dir, []string{"CGO_ENABLED=0"}, "build", "-mod=mod", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.TrimSpace("-s -w "+t.ldflags), "-o", tmp, t.binaries[name])
	if err != nil {
		return fmt.Errorf("build %s %s in %s: %w", name, t.version, dir, err)
	}
	if err := os.Rename(tmp, b.path(t, name)); err != nil {
		return fmt.Errorf("put %s into the cache: %w", name, err)
	}
	b.say("built %s in %s", name, time.Since(begin).Round(time.Second))
	return nil
}

// stillBusy says every now and then that a long build is going on.
func (b binaries) stillBusy(name string, begin time.Time) (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(20 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				b.say("still building %s (%s)", name, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}

// goCommand runs the go tool in a generated module: no workspace and no flags of
// the surrounding module apply there.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS="}, env...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(tail([]byte(stderr.String()), 3000)))
	}
	return out, nil
}

// lockFile takes an exclusive lock that ends with the process at the latest.
// waiting is called once when somebody else holds it.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ctx.Err()), f.Close())
		case <-time.After(250 * time.Millisecond):
		}
	}
}
