package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// EnvtestAssets makes sure that etcd, kube-apiserver and kubectl are in the cache
// and returns the directory to set KUBEBUILDER_ASSETS to. The first call may
// build them, for some minutes; progress goes to out, which may be nil.
func EnvtestAssets(ctx context.Context, out io.Writer) (string, error) {
	o := OptionsFromEnv()
	o.Mode, o.Out = ModeLocal, out
	o, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	l := newLocal(o)
	l.begin = time.Now()
	if err := l.binaries().ensure(ctx, kubernetesTools(), "kube-apiserver", "kubectl"); err != nil {
		return "", err
	}
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		if err := ensurePackages(ctx, l.say); err != nil {
			return "", err
		}
		if etcd, err = exec.LookPath("etcd"); err != nil {
			return "", fmt.Errorf("find etcd: %w", err)
		}
	}
	dir := filepath.Join(o.Cache, "envtest-"+kubernetesVersion)
	for name, target := range map[string]string{
		"etcd":           etcd,
		"kube-apiserver": l.binaries().path(kubernetesTools(), "kube-apiserver"),
		"kubectl":        l.binaries().path(kubernetesTools(), "kubectl"),
	} {
		if err := replaceLink(target, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// replaceLink makes or corrects a symbolic link; tests of several packages may
// do it at the same time.
func replaceLink(target, link string) error {
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	tmp := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(target, tmp); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link %s: %w", link, err)
	}
	if err := os.Rename(tmp, link); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	return nil
}
