package create

import (
	"strings"
	"testing"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

func valid() *options {
	return &options{group: groupOptions{
		serverOptions: serverOptions{Name: "demo", Namespace: "prod", AcceptEULA: true, Edition: "Developer", Storage: "10Gi", Memory: "2Gi", CPU: "250m"},
		Replicas:      3, Profile: "Balanced", Required: "Preferred", Readable: true,
	}}
}

func TestValidate_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*options)
		want   string
	}{
		"a name of 14 characters":       {func(o *options) { o.group.Name = "abcdefghijklmn" }, "at most 15 characters"},
		"a name with a capital":         {func(o *options) { o.group.Name = "Demo" }, "no valid name"},
		"no licence":                    {func(o *options) { o.group.AcceptEULA = false }, "licence terms"},
		"too little memory":             {func(o *options) { o.group.Memory = "1Gi" }, "2000 MB"},
		"a size that is no quantity":    {func(o *options) { o.group.Storage = "ten" }, "not a quantity"},
		"no replica":                    {func(o *options) { o.group.Replicas = 0 }, "1 to 9"},
		"ten replicas":                  {func(o *options) { o.group.Replicas = 10 }, "1 to 9"},
		"six synchronous replicas":      {func(o *options) { o.group.Replicas = 6 }, "five synchronous"},
		"only asynchronous replicas":    {func(o *options) { o.group.Async = 3 }, "no synchronous"},
		"a witness beside three":        {func(o *options) { o.group.Witness = true }, "47108"},
		"an unknown profile":            {func(o *options) { o.group.Profile = "Quick" }, "unknown profile"},
		"yaml without a dry run":        {func(o *options) { o.output = "yaml" }, "--dry-run"},
		"an unknown dry run":            {func(o *options) { o.dryRun = "yes" }, "unknown dry run"},
		"an unknown image pull policy":  {func(o *options) { o.group.PullPolicy = "Sometimes" }, "pull policy"},
		"json, which is not supported":  {func(o *options) { o.output = "json" }, "unknown output"},
		"an unknown kind of durability": {func(o *options) { o.group.Required = "Best" }, "durability"},
		"a negative number of async":    {func(o *options) { o.group.Async = -1 }, "no synchronous"},
		"nine replicas and a witness":   {func(o *options) { o.group.Replicas, o.group.Async, o.group.Witness = 9, 7, true }, "tenth"},
	} {
		o := valid()
		tc.change(o)
		err := o.validate()
		if err == nil || !strings.Contains(err.Error()+hint(err), tc.want) {
			t.Errorf("%s: got %v, want a refusal with %q", name, err, tc.want)
		}
		if err != nil && exit.Of(err) != exit.Usage {
			t.Errorf("%s: exit code %d", name, exit.Of(err))
		}
	}
	if err := valid().validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func hint(err error) string {
	if e, ok := err.(*exit.Error); ok { //nolint:errorlint // the test wants the outermost
		return " " + e.Hint
	}
	return ""
}

func TestManifest_IsWhatWillBeApplied(t *testing.T) {
	t.Parallel()
	o := valid()
	o.group.Replicas, o.group.Async, o.group.Witness = 3, 1, true
	o.group.Databases = []string{"orders", `odd "name]: #`}
	o.group.SASecret = "mine/PASSWORD"
	text, g, err := o.group.manifest()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if g.Name != "demo" || g.Namespace != "prod" || g.Spec.AcceptEula != "Y" {
		t.Errorf("name, namespace or licence are wrong:\n%s", text)
	}
	var modes []string
	for _, r := range g.Spec.Replicas {
		modes = append(modes, string(r.AvailabilityMode))
	}
	if got := strings.Join(modes, " "); got != "SynchronousCommit SynchronousCommit AsynchronousCommit ConfigurationOnly" {
		t.Errorf("modes: %s", got)
	}
	if g.Spec.Databases[1].Name != o.group.Databases[1] {
		t.Errorf("the database name did not survive: %q", g.Spec.Databases[1].Name)
	}
	if name, key := g.Spec.SAPasswordSecret("demo"); name != "mine" || key != "PASSWORD" {
		t.Errorf("sa password from %s/%s", name, key)
	}
}

func FuzzManifest_NoValueBreaksOut(f *testing.F) {
	f.Add("orders", "image:1")
	f.Add("a\nb: c", "x # y")
	f.Fuzz(func(t *testing.T, database, image string) {
		if database == "" || image == "" {
			t.Skip()
		}
		o := valid()
		o.group.Databases, o.group.Image = []string{database}, image
		text, g, err := o.group.manifest()
		if err != nil {
			return // a text that YAML cannot carry is refused, not misread
		}
		if len(g.Spec.Databases) != 1 || len(g.Spec.Replicas) != 3 || g.Spec.ClusterType != "" {
			t.Errorf("a value changed the shape of the manifest:\n%s", text)
		}
	})
}

func TestReplicaList_FirstIsThePrimary(t *testing.T) {
	t.Parallel()
	o := groupOptions{Replicas: 2, Async: 1}
	if got := o.ReplicaList()[0].Mode; got != string(api.SynchronousCommit) {
		t.Errorf("the first replica is %s", got)
	}
}
