package krew

import (
	"fmt"
	"strings"
	"testing"
)

func manifest() string {
	var b strings.Builder
	b.WriteString(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {name: mssql}
spec:
  version: v0.1.0
  homepage: https://example.com
  shortDescription: Run SQL Server availability groups
  description: Text.
  platforms:
`)
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			end, bin := "tar.gz", "kubectl-mssql"
			if os == "windows" {
				end, bin = "zip", "kubectl-mssql.exe"
			}
			fmt.Fprintf(&b, "  - selector: {matchLabels: {os: %s, arch: %s}}\n    uri: https://example.com/%s_%s.%s\n    sha256: %s\n    bin: %s\n",
				os, arch, os, arch, end, strings.Repeat("0a", 32), bin)
		}
	}
	return b.String()
}

func TestCheck_AcceptsAGoodManifest(t *testing.T) {
	t.Parallel()
	m, err := Check("plugins/mssql.yaml", []byte(manifest()))
	if err != nil || len(m.Spec.Platforms) != 6 {
		t.Errorf("%d platforms, %v", len(m.Spec.Platforms), err)
	}
}

func TestCheck_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, old, new, want string }{
		"another file name":          {"other.yaml", "", "", "the file is other.yaml"},
		"a name with a dot":          {"ms.sql.yaml", "name: mssql", "name: ms.sql", "not allowed"},
		"a device of Windows":        {"aux.yaml", "name: mssql", "name: aux", "not allowed"},
		"a name in upper case":       {"MSSQL.yaml", "name: mssql", "name: MSSQL", "not allowed"},
		"a version without v":        {"mssql.yaml", "v0.1.0", "0.1.0", "not semantic"},
		"a version that is none":     {"mssql.yaml", "v0.1.0", "vnext", "not semantic"},
		"a short text of two lines":  {"mssql.yaml", "shortDescription: Run", "shortDescription: |\n    a\n    b\n  caveats: Run", "one line"},
		"a foreign key":              {"mssql.yaml", "os: linux, arch: amd64", "os: linux, libc: musl", `key "libc"`},
		"an unsupported pair":        {"mssql.yaml", "arch: amd64", "arch: s390x", "matches no supported pair"},
		"a pair twice":               {"mssql.yaml", "os: darwin, arch: arm64", "os: darwin", "darwin/amd64 matches 2"},
		"a bare binary":              {"mssql.yaml", "linux_amd64.tar.gz", "linux_amd64", "neither .tar.gz nor .zip"},
		"a checksum in upper case":   {"mssql.yaml", "0a0a0a0a0a", "0A0A0A0A0A", "no sha256"},
		"Windows without exe":        {"mssql.yaml", "kubectl-mssql.exe", "kubectl-mssql", "on windows"},
		"an empty list of files":     {"mssql.yaml", "bin: kubectl-mssql\n", "bin: kubectl-mssql\n    files: []\n", "files is given and empty"},
		"a field that krew does not": {"mssql.yaml", "homepage:", "homepages:", "unknown field"},
	} {
		text := strings.Replace(manifest(), tc.old, tc.new, 1)
		if _, err := Check(tc.file, []byte(text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
