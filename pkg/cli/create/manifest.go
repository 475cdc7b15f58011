package create

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// serverOptions are the flags that both kinds share.
type serverOptions struct {
	Name, Namespace string
	AcceptEULA      bool
	Image           string
	PullPolicy      string
	Edition         string
	Storage         string
	StorageClass    string
	Memory, CPU     string
	SASecret        string // name or name/key
}

func (o serverOptions) saName() string { name, _, _ := strings.Cut(o.SASecret, "/"); return name }

func (o serverOptions) saKey() string {
	if _, key, ok := strings.Cut(o.SASecret, "/"); ok {
		return key
	}
	return api.SAPasswordKey
}

// SAName and SAKey are for the template.
func (o serverOptions) SAName() string { return o.saName() }

// SAKey is the key inside the Secret.
func (o serverOptions) SAKey() string { return o.saKey() }

type groupOptions struct {
	serverOptions
	Replicas  int
	Async     int
	Witness   bool
	Readable  bool
	Databases []string
	Profile   string
	Required  string // durability
}

// replica is one row of the manifest.
type replica struct{ Mode, Failover, Comment string }

// ReplicaList lays out sync replicas first, then asynchronous ones, then the witness.
func (o groupOptions) ReplicaList() []replica {
	var list []replica
	for i := range o.Replicas - o.Async {
		comment := ""
		if i == 0 {
			comment = "the first primary"
		}
		list = append(list, replica{string(api.SynchronousCommit), string(api.FailoverAutomatic), comment})
	}
	for range o.Async {
		list = append(list, replica{string(api.AsynchronousCommit), string(api.FailoverManual), "never promoted automatically"})
	}
	if o.Witness {
		list = append(list, replica{string(api.ConfigurationOnly), string(api.FailoverManual), "holds the configuration only: the third vote"})
	}
	return list
}

const serverTemplate = `{{define "server"}}  # You accept Microsoft's licence terms for SQL Server.
  acceptEula: "Y"
  edition: {{.Edition}}
{{- if .Image}}
  image: {{q .Image}}
{{- else}}
  # image: mcr.microsoft.com/mssql/server:2025-latest    # pin a CU tag in production
{{- end}}
{{- if .PullPolicy}}
  imagePullPolicy: {{.PullPolicy}}
{{- end}}
{{- if .SASecret}}
  saPasswordSecretRef:
    name: {{q .SAName}}
    key: {{q .SAKey}}
{{- else}}
  # saPasswordSecretRef: {name: my-secret, key: SA_PASSWORD}    # left out: {{.Name}}-sa is made
{{- end}}
  storage:
    dataVolumeSize: {{q .Storage}}    # may grow later, never shrink
{{- if .StorageClass}}
    storageClassName: {{q .StorageClass}}
{{- end}}
    reclaimPolicy: Retain
  resources:
    requests:
      memory: {{q .Memory}}
      cpu: {{q .CPU}}
    limits:
      memory: {{q .Memory}}    # SQL Server's own limit follows from this one
  # mssqlConf: {sqlagent.enabled: "true"}
{{end}}`

const groupTemplate = `apiVersion: kubectl-mssql.io/v1alpha1
kind: SQLServerAvailabilityGroup
metadata:
  name: {{.Name}}    # servers are called {{.Name}}-0, {{.Name}}-1, …
  namespace: {{.Namespace}}
spec:
{{template "server" .}}  replicas:
{{- range .ReplicaList}}
    - availabilityMode: {{.Mode}}{{if .Comment}}    # {{.Comment}}{{end}}
      failoverMode: {{.Failover}}
{{- if and $.Readable (ne .Mode "ConfigurationOnly")}}
      readableSecondary: true
{{- end}}
{{- end}}
{{- if .Databases}}
  # Created when missing, backed up once, added to the group and seeded.
  databases:
{{- range .Databases}}
    - name: {{q .}}
{{- end}}
{{- else}}
  # databases: [{name: orders}]
{{- end}}
  # Preferred: commits wait for half of the secondaries, fewer when they are gone. Required: never fewer.
  durability: {{.Required}}
  automaticFailover:
    enabled: true
    healthThreshold: system    # system, resource or query_processing
    timing:
      profile: {{.Profile}}    # Fast notices a silent node sooner, Tolerant forgives more
  preStopFailover:
    enabled: true
    timeoutSeconds: 30
  listener:
    serviceType: ClusterIP    # writes: {{.Name}}-rw
  readOnlyListener:
    serviceType: ClusterIP    # reads: {{.Name}}-ro
`

const instanceTemplate = `apiVersion: kubectl-mssql.io/v1alpha1
kind: SQLServerInstance
metadata:
  name: {{.Name}}    # the server is called {{.Name}}-0
  namespace: {{.Namespace}}
spec:
{{template "server" .}}  service:
    serviceType: ClusterIP
`

func render(text string, data any) ([]byte, error) {
	t, err := template.New("manifest").Funcs(template.FuncMap{"q": quote}).Parse(serverTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the manifest's template: %w", err)
	}
	if t, err = t.New("main").Parse(text); err != nil {
		return nil, fmt.Errorf("parse the manifest's template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), nil
}

// quote writes a YAML string that no value can break out of.
func quote(s string) (string, error) {
	b, err := yaml.Marshal(s)
	if err != nil {
		return "", err
	}
	one := strings.TrimSuffix(string(b), "\n")
	if strings.Contains(one, "\n") { // a block scalar: fall back to JSON, which YAML contains
		return fmt.Sprintf("%q", s), nil
	}
	return one, nil
}

// GroupManifest is the commented manifest, and the same as an object.
func (o groupOptions) manifest() ([]byte, *api.SQLServerAvailabilityGroup, error) {
	text, err := render(groupTemplate, o)
	if err != nil {
		return nil, nil, err
	}
	var g api.SQLServerAvailabilityGroup
	if err := yaml.UnmarshalStrict(text, &g); err != nil {
		return nil, nil, fmt.Errorf("the manifest does not parse: %w", err)
	}
	return text, &g, nil
}

func (o serverOptions) instanceManifest() ([]byte, *api.SQLServerInstance, error) {
	text, err := render(instanceTemplate, o)
	if err != nil {
		return nil, nil, err
	}
	var i api.SQLServerInstance
	if err := yaml.UnmarshalStrict(text, &i); err != nil {
		return nil, nil, fmt.Errorf("the manifest does not parse: %w", err)
	}
	return text, &i, nil
}
