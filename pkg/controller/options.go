package controller

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

// Options of `controller run`.
type Options struct {
	// Namespaces to be watched; all when empty.
	Namespaces []string
	// OperatorImage is this program's image, for the init container of the pods.
	OperatorImage      string
	OperatorPullPolicy string
	MetricsAddress     string
	HealthAddress      string
	LeaderElect        bool
	// LeaderNamespace holds the lock of the leader election.
	LeaderNamespace string
	LogLevel        string
	LogFormat       string
	// Identity names this process in records and locks.
	Identity string
	// severalInProcess lets tests run more than one controller in a process.
	severalInProcess bool
}

// envOperatorImage is used when the flag is not set.
const envOperatorImage = "OPERATOR_IMAGE"

// DefaultOptions are those of the installation; getenv is os.Getenv.
func DefaultOptions(getenv func(string) string) Options {
	o := Options{
		OperatorImage:      getenv(envOperatorImage),
		OperatorPullPolicy: string(corev1.PullIfNotPresent),
		MetricsAddress:     ":8080",
		HealthAddress:      ":8081",
		LeaderElect:        true,
		LeaderNamespace:    getenv("POD_NAMESPACE"),
		LogLevel:           "info",
		LogFormat:          "json",
		Identity:           getenv("POD_NAME"),
	}
	if o.Identity == "" {
		if host, err := os.Hostname(); err == nil {
			o.Identity = host
		}
	}
	return o
}

// AddFlags binds the options.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Namespaces, "watch-namespaces", o.Namespaces, "namespaces to watch, separated by commas; all when empty")
	f.StringVar(&o.OperatorImage, "operator-image", o.OperatorImage, "image of this program, for the init container of the pods (environment: "+envOperatorImage+")")
	f.StringVar(&o.OperatorPullPolicy, "operator-image-pull-policy", o.OperatorPullPolicy, "pull policy of that image: Always, IfNotPresent or Never")
	f.StringVar(&o.MetricsAddress, "metrics-addr", o.MetricsAddress, "address of the metrics endpoint; 0 switches it off")
	f.StringVar(&o.HealthAddress, "health-addr", o.HealthAddress, "address of /healthz and /readyz")
	f.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one of several controllers act at a time")
	f.StringVar(&o.LeaderNamespace, "leader-election-namespace", o.LeaderNamespace, "namespace of the leader election's Lease (environment: POD_NAMESPACE)")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "error, warn, info or debug")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
}

// Validate says what is wrong, all of it.
func (o *Options) Validate() error {
	var errs []error
	if o.OperatorImage == "" {
		errs = append(errs, fmt.Errorf("--operator-image is empty: the pods need this program's image; set the flag or %s", envOperatorImage))
	}
	switch corev1.PullPolicy(o.OperatorPullPolicy) {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		errs = append(errs, fmt.Errorf("--operator-image-pull-policy is %q; it must be Always, IfNotPresent or Never", o.OperatorPullPolicy))
	}
	if _, err := logLevel(o.LogLevel); err != nil {
		errs = append(errs, err)
	}
	if o.LogFormat != "json" && o.LogFormat != "text" {
		errs = append(errs, fmt.Errorf("--log-format is %q; it must be json or text", o.LogFormat))
	}
	if o.LeaderElect && o.LeaderNamespace == "" {
		errs = append(errs, errors.New("--leader-election-namespace is empty: set the flag or POD_NAMESPACE, or switch leader election off with --leader-elect=false"))
	}
	for _, ns := range o.Namespaces {
		if strings.TrimSpace(ns) == "" {
			errs = append(errs, errors.New("--watch-namespaces contains an empty name"))
			break
		}
	}
	return errors.Join(errs...)
}

func (o *Options) namespaces() []string {
	ns := slices.Clone(o.Namespaces)
	slices.Sort(ns)
	return slices.Compact(ns)
}
