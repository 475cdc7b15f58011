package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// cniBin is where Debian puts the CNI plugins.
const cniBin = "/usr/lib/cni"

// systemPackages maps a file that must be there, a path or a command's name, to
// the Debian package that has it.
func systemPackages() [][2]string {
	return [][2]string{
		{"etcd", "etcd-server"},
		{"containerd", "containerd"},
		{"runc", "runc"},
		{cniBin + "/ptp", "containernetworking-plugins"},
		{"nft", "nftables"},
		{"ip", "iproute2"},
		{"nsenter", "util-linux"},
		{"unshare", "util-linux"},
		{"mount", "mount"},
	}
}

// missingPackages asks have for every file and returns the packages to install.
func missingPackages(have func(file string) bool) []string {
	var out []string
	for _, p := range systemPackages() {
		if !have(p[0]) && !slices.Contains(out, p[1]) {
			out = append(out, p[1])
		}
	}
	return out
}

// systemPath adds the directories of system programs to PATH, which "su" without
// a dash leaves out. The daemons look there for runc, mount and others.
func systemPath(path string) string {
	parts := filepath.SplitList(path)
	for _, d := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if !slices.Contains(parts, d) {
			parts = append(parts, d)
		}
	}
	return strings.Join(parts, string(filepath.ListSeparator))
}

func haveFile(file string) bool {
	_, err := exec.LookPath(file)
	return err == nil
}

// ensurePackages installs what the machine lacks. Debian starts a service that
// it installs; a policy file that says no keeps etcd and containerd quiet.
func ensurePackages(ctx context.Context, say func(string, ...any)) error {
	if err := os.Setenv("PATH", systemPath(os.Getenv("PATH"))); err != nil {
		return fmt.Errorf("add the system's directories to PATH: %w", err)
	}
	missing := missingPackages(haveFile)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine lacks %s and has no apt-get: install them in its own way", strings.Join(missing, ", "))
	}
	say("installing %s", strings.Join(missing, ", "))
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Stat(policy); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return fmt.Errorf("keep new services from starting: %w", err)
		}
		defer func() {
			if err := os.Remove(policy); err != nil {
				say("could not remove %s: %v", policy, err)
			}
		}()
	}
	install := append([]string{
		"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y",
		"-o", "DPkg::Lock::Timeout=300", "install", "--no-install-recommends",
	}, missing...)
	if _, err := run(ctx, "", install...); err == nil {
		return nil
	}
	// A bare image has no package lists yet.
	if _, err := run(ctx, "", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update"); err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(missing, ", "), err)
	}
	if _, err := run(ctx, "", install...); err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(missing, ", "), err)
	}
	return nil
}
