package complete

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is what the files hold.
type kubeconfig struct{ raw clientcmdapi.Config }

func readKubeconfig(flags *genericclioptions.ConfigFlags) (kubeconfig, error) {
	if flags == nil {
		return kubeconfig{}, errors.New("there is no kubeconfig")
	}
	// The loader knows the overrides of the command line; the names stand in the files as they are.
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	return kubeconfig{raw}, err
}

func (k kubeconfig) contexts() []string { return slices.Sorted(maps.Keys(k.raw.Contexts)) }

func (k kubeconfig) clusters() []string { return slices.Sorted(maps.Keys(k.raw.Clusters)) }

func (k kubeconfig) users() []string { return slices.Sorted(maps.Keys(k.raw.AuthInfos)) }

func (k kubeconfig) namespaces() []string {
	seen := map[string]bool{}
	for _, c := range k.raw.Contexts {
		if c.Namespace != "" {
			seen[c.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
