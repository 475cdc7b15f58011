// Package release tests the configuration of releases without building one;
// `make release-snapshot` builds and looks into the result.
package release

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type config struct {
	Version int
	Builds  []struct {
		Env, Flags, Goos, Goarch []string
		ModTimestamp             string `json:"mod_timestamp"`
	}
	Archives []struct {
		Formats         []string
		FormatOverrides []struct {
			Goos    string
			Formats []string
		} `json:"format_overrides"`
		Files []struct{ Src, Dst string }
	}
	Nfpms []struct {
		Formats  []string
		Contents []struct{ Src, Dst, Type string }
	}
	Signs []struct{ Cmd, Artifacts string }
	Sboms []struct{ Cmd string }
	Krews []struct {
		Name             string
		ShortDescription string `json:"short_description"`
		SkipUpload       any    `json:"skip_upload"`
	}
}

func load(t *testing.T) config {
	t.Helper()
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.Version != 2 || len(c.Builds) != 1 || len(c.Archives) != 1 || len(c.Nfpms) != 1 || len(c.Krews) != 1 {
		t.Fatalf("the configuration has another shape: %+v", c)
	}
	return c
}

func TestRelease_BuildsSixPlatformsWithoutCAndReproducibly(t *testing.T) {
	t.Parallel()
	b := load(t).Builds[0]
	if !slices.Equal(b.Goos, []string{"linux", "darwin", "windows"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("%v × %v", b.Goos, b.Goarch)
	}
	if !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Contains(b.Flags, "-trimpath") || b.ModTimestamp == "" {
		t.Errorf("not reproducible, or with C: %+v", b)
	}
}

func TestRelease_ArchivesHoldTheLicenceAndWindowsGetsAZip(t *testing.T) {
	t.Parallel()
	a := load(t).Archives[0]
	licence := false
	for _, f := range a.Files {
		licence = licence || f.Src == "LICENSE" && f.Dst == ""
	}
	if !licence {
		t.Error("no LICENSE at the root: krew refuses the archive")
	}
	if len(a.FormatOverrides) != 1 || a.FormatOverrides[0].Goos != "windows" || a.FormatOverrides[0].Formats[0] != "zip" || a.Formats[0] != "tar.gz" {
		t.Errorf("formats %v, %+v", a.Formats, a.FormatOverrides)
	}
}

func TestRelease_PackagesBringTheCompletionLinkPagesAndScripts(t *testing.T) {
	t.Parallel()
	p := load(t).Nfpms[0]
	if !slices.Equal(p.Formats, []string{"deb", "rpm"}) {
		t.Errorf("formats %v", p.Formats)
	}
	for _, want := range []string{"/usr/bin/kubectl_complete-mssql", "/usr/share/man/man1/", "/usr/share/bash-completion/completions/kubectl-mssql",
		"/usr/share/zsh/vendor-completions/_kubectl-mssql", "/usr/share/fish/vendor_completions.d/kubectl-mssql.fish"} {
		found := false
		for _, c := range p.Contents {
			found = found || c.Dst == want && (c.Type == "symlink") == strings.HasPrefix(want, "/usr/bin/")
		}
		if !found {
			t.Errorf("the packages lack %s", want)
		}
	}
}

func TestRelease_IsSignedAndHasABillOfMaterials(t *testing.T) {
	t.Parallel()
	c := load(t)
	if len(c.Signs) != 1 || c.Signs[0].Cmd != "cosign" || c.Signs[0].Artifacts != "checksum" {
		t.Errorf("signs %+v", c.Signs)
	}
	if len(c.Sboms) != 1 || c.Sboms[0].Cmd != "go" {
		t.Errorf("sboms %+v: a bare machine has nothing but Go", c.Sboms)
	}
}

func TestRelease_KrewEntryFitsItsRules(t *testing.T) {
	t.Parallel()
	k := load(t).Krews[0]
	if k.Name != "mssql" || k.ShortDescription == "" || len(k.ShortDescription) > 50 || k.SkipUpload != true {
		t.Errorf("%+v", k)
	}
}
