package installation

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Flags are the options of an installation on the command line. Those that were not
// given leave an earlier installation's options as they are.
type Flags struct {
	image, registry, pullPolicy, logLevel string
	pullSecrets, watch, tolerations       []string
	nodeSelector                          map[string]string
	replicas                              int32
	networkPolicy, monitoring             bool
	patchFiles                            []string

	set *pflag.FlagSet
}

// Add binds the flags.
func (f *Flags) Add(fl *pflag.FlagSet) {
	d := manifests.Default()
	f.set = fl
	fl.StringVar(&f.image, "image", d.Image, "the operator's image")
	fl.StringVar(&f.registry, "registry", "", "registry (and path) that mirrors the operator's image: registry.example.com/mirror")
	fl.StringVar(&f.pullPolicy, "image-pull-policy", string(d.ImagePullPolicy), "Always, IfNotPresent or Never")
	fl.StringSliceVar(&f.pullSecrets, "image-pull-secret", nil, "name of a Secret to pull the operator's image with")
	fl.Int32Var(&f.replicas, "replicas", d.Replicas, "number of controllers; one leads, the others wait")
	fl.StringSliceVar(&f.watch, "watch-namespaces", nil, "look only at these namespaces, with Roles there instead of a ClusterRole")
	fl.StringVar(&f.logLevel, "log-level", d.LogLevel, "debug, info, warn or error")
	fl.StringToStringVar(&f.nodeSelector, "node-selector", nil, "labels of the nodes that the controllers may run on")
	fl.StringSliceVar(&f.tolerations, "tolerations", nil, "taints that the controllers tolerate: key, key=value, key:Effect or key=value:Effect")
	fl.BoolVar(&f.networkPolicy, "network-policy", false, "let nothing but health checks and metrics reach the controllers")
	fl.BoolVar(&f.monitoring, "monitoring", false, "make PodMonitors and alerts; the cluster needs the Prometheus operator")
	fl.StringArrayVar(&f.patchFiles, "patch", nil, "file with strategic merge patches for the rendered objects; may be given several times")
}

// Apply puts the flags that were given over the options.
func (f *Flags) Apply(o *manifests.Options) error {
	given := func(name string) bool { return f.set.Changed(name) }
	if given("image") {
		o.Image = f.image
	}
	if given("registry") {
		if f.registry == "" || strings.Contains(f.registry, "://") {
			return exit.Errorf(exit.Usage, "write it as registry.example.com/mirror", "%q is no registry", f.registry)
		}
		o.SetRegistry(f.registry)
	}
	if given("image-pull-policy") {
		o.ImagePullPolicy = corev1.PullPolicy(f.pullPolicy)
	}
	if given("image-pull-secret") {
		o.ImagePullSecrets = f.pullSecrets
	}
	if given("replicas") {
		o.Replicas = f.replicas
	}
	if given("watch-namespaces") {
		o.WatchNamespaces = f.watch
	}
	if given("log-level") {
		o.LogLevel = f.logLevel
	}
	if given("node-selector") {
		o.NodeSelector = f.nodeSelector
	}
	if given("tolerations") {
		o.Tolerations = nil
		for _, text := range f.tolerations {
			t, err := ParseToleration(text)
			if err != nil {
				return err
			}
			o.Tolerations = append(o.Tolerations, t)
		}
	}
	if given("network-policy") {
		o.NetworkPolicy = f.networkPolicy
	}
	if given("monitoring") {
		o.Monitoring = f.monitoring
	}
	if given("patch") {
		o.Patches = nil
		for _, path := range f.patchFiles {
			text, err := os.ReadFile(path)
			if err != nil {
				return exit.With(exit.Usage, "", fmt.Errorf("read the patch: %w", err))
			}
			patches, err := manifests.SplitPatches(text)
			if err != nil {
				return exit.With(exit.Usage, "", fmt.Errorf("%s: %w", path, err))
			}
			if len(patches) == 0 {
				return exit.Errorf(exit.Usage, "", "%s holds no patch", path)
			}
			o.Patches = append(o.Patches, patches...)
		}
	}
	return Validate(o)
}

// Validate refuses options that cannot work.
func Validate(o *manifests.Options) error {
	switch o.ImagePullPolicy {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return exit.Errorf(exit.Usage, "use Always, IfNotPresent or Never", "unknown image pull policy %q", o.ImagePullPolicy)
	}
	switch o.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		return exit.Errorf(exit.Usage, "use debug, info, warn or error", "unknown log level %q", o.LogLevel)
	}
	if o.Replicas < 1 || o.Replicas > 9 {
		return exit.Errorf(exit.Usage, "use 1 to 9; one leads, the others wait", "%d controllers", o.Replicas)
	}
	for _, ns := range append([]string{o.Namespace}, o.WatchNamespaces...) {
		if errs := validation.IsDNS1123Label(ns); len(errs) > 0 {
			return exit.Errorf(exit.Usage, "", "%q is no namespace: %s", ns, errs[0])
		}
	}
	if _, err := manifests.Render(*o); err != nil {
		return exit.With(exit.Usage, "", err)
	}
	return nil
}

// ParseToleration reads key, key=value, key:Effect, key=value:Effect; "*" tolerates all.
func ParseToleration(text string) (corev1.Toleration, error) {
	key, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(key, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	if hasValue {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	if key == "*" && !hasValue {
		t.Key = ""
	}
	bad := func(why string) error {
		return exit.Errorf(exit.Usage, "write key, key=value, key:Effect or key=value:Effect", "toleration %q: %s", text, why)
	}
	if t.Key != "" {
		if errs := validation.IsQualifiedName(t.Key); len(errs) > 0 {
			return t, bad(errs[0])
		}
	} else if key != "*" || hasValue {
		return t, bad("it has no key")
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return t, bad(errs[0])
	}
	if hasEffect {
		switch e := corev1.TaintEffect(effect); e {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			t.Effect = e
		default:
			return t, bad("the effect is none of NoSchedule, PreferNoSchedule, NoExecute")
		}
	}
	return t, nil
}
