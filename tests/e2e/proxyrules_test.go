package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// proxyRules is to which addresses kube-proxy on a node sends the clients of a Service, as
// the node's own rules say: what the API server shows is there only once kube-proxy has
// heard of it. Nothing where they cannot be read: a node that is dead or frozen.
func proxyRules(ctx context.Context, node, service string) (addresses []string, ok bool) {
	pid := proxyOf(node)
	if pid == 0 {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(pid), "--net", "--", "nft", "list", "table", "ip", "kube-proxy").Output()
	if err != nil {
		return nil, false
	}
	return endpointsIn(string(out), namespace+"/"+service), true
}

var target = regexp.MustCompile(`([0-9]+(?:\.[0-9]+){3}) \. [0-9]+`)

// endpointsIn finds the addresses in the chain of a Service, as kube-proxy writes it in
// nftables mode: "dnat ip to numgen random mod 1 map { 0 : 10.210.1.3 . 1433 }".
func endpointsIn(rules, service string) []string {
	var out []string
	inside := false
	for l := range strings.Lines(rules) {
		switch l = strings.TrimSpace(l); {
		case strings.HasPrefix(l, "chain service-") && strings.Contains(l, "-"+service+"/tcp/"):
			inside = true
		case l == "}":
			inside = false
		case inside && strings.Contains(l, "dnat"):
			for _, m := range target.FindAllStringSubmatch(l, -1) {
				out = append(out, m[1])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// proxyOf finds the process of kube-proxy of one node of the local cluster.
func proxyOf(node string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		if filepath.Base(args[0]) != "kube-proxy" || !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "--config=") && strings.HasSuffix(a, "/"+node+"/kube-proxy.yaml")
		}) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			return pid
		}
	}
	return 0
}
