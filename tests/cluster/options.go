package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// Mode says what kind of cluster the tests run on.
type Mode string

const (
	// ModeLocal builds the nodes on this machine; needs root.
	ModeLocal Mode = "local"
	// ModeKind asks kind for them; needs a Docker engine.
	ModeKind Mode = "kind"
	// ModeCurrent uses the cluster of the given kubeconfig and changes nothing about it.
	ModeCurrent Mode = "current"
)

// Environment variables that the package reads in OptionsFromEnv.
const (
	EnvMode  = "CLUSTER"
	EnvName  = "KUBECTL_MSSQL_CLUSTER_NAME"
	EnvRoot  = "KUBECTL_MSSQL_CLUSTER_ROOT"
	EnvCache = "KUBECTL_MSSQL_CACHE"
)

// DefaultNodes is the number of nodes that Up makes when it is not told.
const DefaultNodes = 3

// ErrNotSupported is returned for what a mode cannot do, for example a node
// fault on a cluster that somebody else made.
var ErrNotSupported = errors.New("not supported by this kind of cluster")

// Options describe one cluster.
type Options struct {
	// Mode is local when empty.
	Mode Mode
	// Name is the prefix of every link and cgroup; at most 8 lower-case letters
	// and digits, "kmssql" when empty.
	Name string
	// Root holds all files of a local cluster, /var/opt/kubectl-mssql/<name> when
	// empty. It must not lie below /var/lib, /var/log or /run: every node has
	// its own of those.
	Root string
	// Cache holds built binaries, by version; shared by all clusters.
	Cache string
	// Kubeconfig is the cluster of ModeCurrent; the usual search order when empty.
	Kubeconfig string
	// Out gets the progress lines; nil means none.
	Out io.Writer
}

// OptionsFromEnv reads the options from the environment, see the Env constants.
func OptionsFromEnv() Options {
	return Options{
		Mode:       Mode(os.Getenv(EnvMode)),
		Name:       os.Getenv(EnvName),
		Root:       os.Getenv(EnvRoot),
		Cache:      os.Getenv(EnvCache),
		Kubeconfig: os.Getenv("KUBECONFIG"),
	}
}

// Cluster is what every mode can do.
type Cluster interface {
	// Up makes the cluster, or what is missing of it, and returns when all nodes
	// are Ready, the default StorageClass exists and DNS answers.
	Up(ctx context.Context, nodes int) error
	// Down removes everything that Up made. It is no error when nothing is there.
	Down(ctx context.Context) error
	// Status reports what is there.
	Status(ctx context.Context) (Status, error)
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig() string
	// LoadImage gives a docker-archive file to every node, also to later ones.
	LoadImage(ctx context.Context, archive string) error
	// Logs writes the log of one component ("kube-apiserver", "kubelet/node1").
	Logs(ctx context.Context, component string, w io.Writer) error
	// Faults is nil where the mode cannot break nodes.
	Faults() Faults
}

// Faults breaks nodes and mends them.
type Faults interface {
	// AddNode makes one more node, Ready when it returns.
	AddNode(ctx context.Context) (string, error)
	// Kill ends every process of the node at once, as a power cut does.
	Kill(ctx context.Context, node string) error
	// Start boots a killed node again.
	Start(ctx context.Context, node string) error
	// Freeze stops every process of the node without ending it.
	Freeze(ctx context.Context, node string) error
	// Thaw undoes Freeze.
	Thaw(ctx context.Context, node string) error
	// Partition cuts the node from a peer.
	Partition(ctx context.Context, node string, cut Cut) error
	// Heal undoes every Partition of the node.
	Heal(ctx context.Context, node string) error
	// StopAPI ends the API server at once; everything else runs on.
	StopAPI(ctx context.Context) error
	// StartAPI starts it again, ready when it returns.
	StartAPI(ctx context.Context) error
}

// New returns the cluster of the options; it makes nothing.
func New(o Options) (Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	switch o.Mode {
	case ModeLocal:
		return newLocal(o), nil
	case ModeKind:
		return newKind(o), nil
	case ModeCurrent:
		return newCurrent(o), nil
	default:
		return nil, fmt.Errorf("%s=%s: unknown kind of cluster, want %s, %s or %s", EnvMode, o.Mode, ModeLocal, ModeKind, ModeCurrent)
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.Mode == "" {
		o.Mode = ModeLocal
	}
	if o.Name == "" {
		o.Name = "kmssql"
	}
	// A link's name has at most 15 characters; "<name>-n16" and "<name>br" must fit.
	if !regexp.MustCompile(`^[a-z][a-z0-9]{0,7}$`).MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q: want 1 to 8 lower-case letters and digits, a letter first", o.Name)
	}
	if o.Root == "" {
		o.Root = filepath.Join("/var/opt/kubectl-mssql", o.Name)
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return o, fmt.Errorf("resolve the cluster's root %s: %w", o.Root, err)
	}
	o.Root = root
	for _, masked := range maskedDirs() {
		if within(o.Root, masked) {
			return o, fmt.Errorf("the cluster's root %s lies below %s, which every node has its own of: set %s to another place", o.Root, masked, EnvRoot)
		}
	}
	if o.Cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find the cache directory: %w; set %s", err, EnvCache)
		}
		o.Cache = filepath.Join(base, "kubectl-mssql")
	}
	if o.Cache, err = filepath.Abs(o.Cache); err != nil {
		return o, fmt.Errorf("resolve the cache %s: %w", o.Cache, err)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o, nil
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !filepath.IsAbs(rel) && (len(rel) < 3 || rel[:3] != "../")
}
