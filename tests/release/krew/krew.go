// Package krew checks a plugin manifest against the rules of krew and of its index,
// so that a release does not find them out there.
package krew

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// Manifest of one plugin, as far as the rules speak of it.
type Manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       Spec              `json:"spec"`
}

// Spec of a plugin.
type Spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Caveats          string     `json:"caveats"`
	Platforms        []Platform `json:"platforms"`
}

// Platform is one archive.
type Platform struct {
	Selector *metav1.LabelSelector `json:"selector"`
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Bin      string                `json:"bin"`
	Files    []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
}

// supported pairs of the index's own test.
func supported() [][2]string {
	return [][2]string{
		{"windows", "386"}, {"windows", "amd64"}, {"windows", "arm64"},
		{"linux", "386"}, {"linux", "amd64"}, {"linux", "arm"}, {"linux", "arm64"}, {"linux", "ppc64le"},
		{"darwin", "386"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	}
}

var (
	safeName = regexp.MustCompile(`^[\w-]+$`)
	kebab    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	device   = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
	sum      = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check reads a manifest from the text of the file of that name and joins all that is wrong.
func Check(file string, text []byte) (Manifest, error) {
	var m Manifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	name := m.Metadata.Name
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		bad("it is a %s of %s", m.Kind, m.APIVersion)
	}
	if base := path.Base(file); base != name+".yaml" {
		bad("the file is %s, the plugin %s", base, name)
	}
	if !safeName.MatchString(name) || !kebab.MatchString(name) || device.MatchString(name) || strings.HasPrefix(name, "kube") {
		bad("the name %q is not allowed", name)
	}
	s := m.Spec
	if _, err := version.ParseSemantic(s.Version); err != nil || !strings.HasPrefix(s.Version, "v") {
		bad("the version %q is not semantic with a v", s.Version)
	}
	if s.ShortDescription == "" || strings.ContainsAny(s.ShortDescription, "\n\r") || len(s.ShortDescription) > 50 {
		bad("the short description %q is not one line of at most 50 characters", s.ShortDescription)
	}
	if s.Description == "" || s.Homepage == "" {
		bad("description and homepage must not be empty")
	}
	if len(s.Platforms) == 0 {
		bad("no platforms")
	}
	for i, p := range s.Platforms {
		for _, err := range platform(p) {
			bad("platform %d: %w", i, err)
		}
	}
	problems = append(problems, overlaps(s.Platforms)...)
	return m, errors.Join(problems...)
}

func platform(p Platform) []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if p.Selector == nil || len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions) == 0 {
		bad("the selector is empty")
	} else {
		keys := []string{}
		for k := range p.Selector.MatchLabels {
			keys = append(keys, k)
		}
		for _, e := range p.Selector.MatchExpressions {
			keys = append(keys, e.Key)
		}
		for _, k := range keys {
			if k != "os" && k != "arch" {
				bad("the selector has the key %q", k)
			}
		}
	}
	if !strings.HasSuffix(p.URI, ".tar.gz") && !strings.HasSuffix(p.URI, ".zip") {
		bad("%q is neither .tar.gz nor .zip", p.URI)
	}
	if !strings.HasPrefix(p.URI, "https://") {
		bad("%q is not fetched by https", p.URI)
	}
	if !sum.MatchString(p.SHA256) {
		bad("%q is no sha256 in lower case", p.SHA256)
	}
	if p.Bin == "" {
		bad("no bin")
	}
	if p.Files != nil && len(p.Files) == 0 {
		bad("files is given and empty")
	}
	return problems
}

// overlaps wants each platform to match a supported pair and no pair two platforms.
func overlaps(platforms []Platform) []error {
	var problems []error
	used := make([]int, len(platforms))
	for _, pair := range supported() {
		hits := 0
		for i, p := range platforms {
			sel, err := metav1.LabelSelectorAsSelector(p.Selector)
			if err != nil || p.Selector == nil || !sel.Matches(labels.Set{"os": pair[0], "arch": pair[1]}) {
				continue
			}
			hits++
			used[i]++
			if exe := strings.HasSuffix(p.Bin, ".exe"); exe != (pair[0] == "windows") {
				problems = append(problems, fmt.Errorf("platform %d: the entry point %s on %s", i, p.Bin, pair[0]))
			}
		}
		if hits > 1 {
			problems = append(problems, fmt.Errorf("%s/%s matches %d platforms", pair[0], pair[1], hits))
		}
	}
	for i, n := range used {
		if n == 0 {
			problems = append(problems, fmt.Errorf("platform %d matches no supported pair", i))
		}
	}
	return problems
}
