package manifests

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

const (
	// SettingsName is the ConfigMap, in the operator's namespace, that says with what
	// options and by which version the installation was made.
	SettingsName = "kubectl-mssql-install"

	settingsKey   = "settings.yaml"
	versionKey    = "version"
	requestAPIKey = "requestAPI"
)

// RequestAPI is the version of the order annotation that this operator understands.
// It rises when the plugin writes orders that an older operator would misread.
const RequestAPI = 1

// Settings are what the ConfigMap holds.
type Settings struct {
	// Version of the plugin that installed.
	Version string
	// RequestAPI that the installed operator understands; 0 when it is not told.
	RequestAPI int
	Options    Options
}

func settingsObject(o Options) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write the settings of the installation: %w", err)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta(o, SettingsName),
		Data: map[string]string{
			versionKey: version.Get().Version, requestAPIKey: strconv.Itoa(RequestAPI), settingsKey: string(text),
		},
	}, nil
}

// ReadSettings reads the ConfigMap of an installation.
func ReadSettings(cm *corev1.ConfigMap) (Settings, error) {
	s := Settings{Version: cm.Data[versionKey]}
	if text, ok := cm.Data[requestAPIKey]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return Settings{}, fmt.Errorf("read ConfigMap %s/%s: key %s is %q, not a number", cm.Namespace, cm.Name, requestAPIKey, text)
		}
		s.RequestAPI = n
	}
	text, ok := cm.Data[settingsKey]
	if !ok {
		return Settings{}, fmt.Errorf("read ConfigMap %s/%s: it has no key %s", cm.Namespace, cm.Name, settingsKey)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &s.Options); err != nil {
		return Settings{}, fmt.Errorf("read ConfigMap %s/%s: key %s was written by another version, or by hand: %w", cm.Namespace, cm.Name, settingsKey, err)
	}
	return s, nil
}
