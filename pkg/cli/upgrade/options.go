package upgrade

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// last are the options of the last install: from its settings, or, for a version that
// kept none, read off the Deployment that runs.
func last(i *installation.Installation) manifests.Options {
	if i.Settings != nil {
		o := i.Settings.Options
		o.Namespace = i.Namespace
		return o
	}
	o := manifests.Default()
	o.Namespace, o.Image, o.WatchNamespaces = i.Namespace, i.Image, i.WatchNamespaces()
	if r := i.Deployment.Spec.Replicas; r != nil {
		o.Replicas = *r
	}
	pod := i.Deployment.Spec.Template.Spec
	o.NodeSelector, o.Tolerations = pod.NodeSelector, pod.Tolerations
	for _, s := range pod.ImagePullSecrets {
		o.ImagePullSecrets = append(o.ImagePullSecrets, s.Name)
	}
	for _, c := range pod.Containers {
		if c.ImagePullPolicy != "" {
			o.ImagePullPolicy = c.ImagePullPolicy
		}
		for _, a := range c.Args {
			if v, ok := strings.CutPrefix(a, "--log-level="); ok {
				o.LogLevel = v
			}
		}
	}
	return o
}

// newImage is the image of this plugin's version in the same registry. An image whose
// tag is no version is somebody's own build and stays; kept tells it.
func newImage(image string) (next string, kept bool) {
	tag := manifests.ImageVersion(image)
	if _, err := installation.Parse(tag); err != nil || strings.Contains(image, "@") {
		return image, true
	}
	i := strings.LastIndex(image, ":")
	prefix := ""
	if strings.HasPrefix(image[i+1:], "v") {
		prefix = "v"
	}
	return image[:i+1] + prefix + version.Get().Version, false
}

func decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read the new %s: %w", manifests.Describe(u), err)
	}
	return nil
}
