package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	// pinned builds with the versions that Kubernetes itself requires, so that
	// the hundreds of packages that both have are compiled once.
	pinned bool
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
		name: "coredns", version: corednsVersion, module: "github.com/coredns/coredns", pinned: true,
		binaries: map[string]string{"coredns": "."},
		main: "package main\n\nimport (\n\t\"github.com/coredns/coredns/coremain\"\n" + imports.String() +
			")\n\nfunc main() { coremain.Run() }\n",
	}
}

func provisionerTools() toolset {
	const module = "github.com/kubernetes-csi/external-provisioner/v6"
	return toolset{
		name: "external-provisioner", version: provisionerVersion, module: module, pinned: true,
		binaries: map[string]string{"csi-provisioner": module + "/cmd/csi-provisioner"},
	}
}

func resizerTools() toolset {
	const module = "github.com/kubernetes-csi/external-resizer/v2"
	return toolset{
		name: "external-resizer", version: resizerVersion, module: module, pinned: true,
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
	return b.build(ctx, t, dir, todo)
}

// ensureAll builds whatever a local cluster runs, the longest build first.
func (b binaries) ensureAll(ctx context.Context) error {
	for _, t := range []toolset{kubernetesTools(), corednsTools(), provisionerTools(), resizerTools()} {
		if err := b.ensure(ctx, t, slices.Sorted(maps.Keys(t.binaries))...); err != nil {
			return err
		}
	}
	return nil
}

// moduleSource is what the go tool knows of one fetched module.
type moduleSource struct {
	// goMod is its go.mod in the go tool's JSON, sums its go.sum.
	goMod, sums []byte
}

func (b binaries) fetch(ctx context.Context, t toolset, dir string) (moduleSource, error) {
	out, err := goCommand(ctx, dir, nil, "mod", "download", "-json", t.module+"@"+t.version)
	if err != nil {
		return moduleSource{}, fmt.Errorf("fetch %s %s: %w", t.module, t.version, err)
	}
	var got struct{ GoMod, Dir string }
	if err := json.Unmarshal(out, &got); err != nil {
		return moduleSource{}, fmt.Errorf("fetch %s: read the answer of go mod download: %w", t.module, err)
	}
	var m moduleSource
	if m.goMod, err = goCommand(ctx, dir, nil, "mod", "edit", "-json", got.GoMod); err != nil {
		return m, fmt.Errorf("read the go.mod of %s: %w", t.module, err)
	}
	// The module's own checksums spare most look-ups of the checksum database.
	if m.sums, err = os.ReadFile(filepath.Join(got.Dir, "go.sum")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("read the go.sum of %s: %w", t.module, err)
	}
	return m, nil
}

// generate writes the go.mod (and main.go) of the toolset's own module.
func (b binaries) generate(ctx context.Context, t toolset, dir string) error {
	b.say("fetching the source of %s %s", t.name, t.version)
	source, err := b.fetch(ctx, t, dir)
	if err != nil {
		return err
	}
	var pins []byte
	sums := source.sums
	if t.pinned {
		kubernetes, err := b.fetch(ctx, kubernetesTools(), dir)
		if err != nil {
			return err
		}
		pins, sums = kubernetes.goMod, mergeSums(sums, kubernetes.sums)
	}
	mod, err := generatedModule(t, source.goMod, pins)
	if err != nil {
		return err
	}
	files := [][2]string{{"go.mod", mod}, {"go.sum", string(sums)}}
	if t.main != "" {
		files = append(files, [2]string{"main.go", t.main})
	}
	for _, f := range files {
		if err := writeFileAtomic(filepath.Join(dir, f[0]), []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mergeSums joins two go.sum files; the go tool refuses a line that comes twice
// with different sums only.
func mergeSums(a, b []byte) []byte {
	lines := strings.Split(string(a)+"\n"+string(b), "\n")
	slices.Sort(lines)
	lines = slices.DeleteFunc(slices.Compact(lines), func(l string) bool { return l == "" })
	return []byte(strings.Join(lines, "\n") + "\n")
}

// goMod is what is needed of a go.mod in the go tool's JSON.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path, Version string }
		New struct{ Path, Version string }
	}
}

// generatedModule renders the go.mod: the module's own requirements, and for
// each staging module that Kubernetes replaces by a path the published version.
// With the go.mod of Kubernetes as pins, its versions replace all others.
func generatedModule(t toolset, own, pins []byte) (string, error) {
	var m, k goMod
	if err := json.Unmarshal(own, &m); err != nil {
		return "", fmt.Errorf("read the go.mod of %s: %w", t.module, err)
	}
	k = m
	if pins != nil {
		k = goMod{}
		if err := json.Unmarshal(pins, &k); err != nil {
			return "", fmt.Errorf("read the go.mod of Kubernetes: %w", err)
		}
	}
	const stagingDir = "./staging/"
	staging := strings.Replace(kubernetesVersion, "v1.", "v0.", 1)
	replaced := map[string]string{}
	for _, r := range k.Replace {
		if strings.HasPrefix(r.New.Path, stagingDir) {
			replaced[r.Old.Path] = r.Old.Path + " " + staging
		}
	}
	if pins != nil {
		for _, r := range k.Require {
			if replaced[r.Path] == "" && r.Path != t.module {
				replaced[r.Path] = r.Path + " " + r.Version
			}
		}
	}
	for _, r := range m.Replace {
		old := strings.TrimSpace(r.Old.Path + " " + r.Old.Version)
		if r.New.Version != "" && replaced[r.Old.Path] == "" {
			replaced[old] = r.New.Path + " " + r.New.Version
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "module %s\n\ngo %s\n\nrequire %s %s\n", t.name, m.Go, t.module, t.version)
	for _, r := range m.Require {
		v := r.Version
		if v == "v0.0.0" && replaced[r.Path] != "" {
			v = staging
		}
		fmt.Fprintf(&s, "require %s %s // indirect\n", r.Path, v)
	}
	for _, old := range slices.Sorted(maps.Keys(replaced)) {
		fmt.Fprintf(&s, "replace %s => %s\n", old, replaced[old])
	}
	return s.String(), nil
}

// build compiles the named binaries in one run of the go tool, which links one
// while it compiles another, and renames each into its place.
//
// There is no -trimpath: with it a package's cache key holds the version that was
// replaced, and what is pinned would be compiled anew.
func (b binaries) build(ctx context.Context, t toolset, dir string, names []string) error {
	begin := time.Now()
	fresh := filepath.Join(dir, "bin", ".new")
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o755)); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	b.say("building %s %s: %s", t.name, t.version, strings.Join(names, ", "))
	args := []string{"build", "-mod=mod", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + t.ldflags), "-o", fresh + "/"}
	for _, n := range names {
		args = append(args, t.binaries[n])
	}
	stop := b.stillBusy(t.name, begin, func() int {
		done, err := os.ReadDir(fresh)
		if err != nil {
			return 0
		}
		return len(done)
	}, len(names))
	_, err := goCommand(ctx, dir, []string{"CGO_ENABLED=0"}, args...)
	stop()
	if err != nil {
		return fmt.Errorf("build %s %s in %s: %w", t.name, t.version, dir, err)
	}
	for _, n := range names {
		if err := os.Rename(filepath.Join(fresh, n), b.path(t, n)); err != nil {
			return fmt.Errorf("put %s into the cache: %w", n, err)
		}
	}
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	b.say("built %s in %s", t.name, time.Since(begin).Round(time.Second))
	return nil
}

// stillBusy says every now and then that a long build is going on, and how many
// of its binaries are there.
func (b binaries) stillBusy(name string, begin time.Time, done func() int, all int) (stop func()) {
	end := make(chan struct{})
	go func() {
		t := time.NewTicker(20 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				b.say("still building %s (%s, %d of %d done)", name, time.Since(begin).Round(time.Second), done(), all)
			}
		}
	}()
	return func() { close(end) }
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
