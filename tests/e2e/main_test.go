// Package e2e tests the product on a real cluster with real kubelets and containers:
// the plugin installs the operator, creates a group on simulated servers (or on
// SQLSERVER_IMAGE), moves it, breaks it, and a checker compares every acknowledged row.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

const (
	writerImage = "kubectl-mssql-writer:e2e"
	serverImage = "mssqlsim:2022"
	namespace   = "e2e"
)

// env is the running cluster with the operator in it.
type env struct {
	cluster cluster.Cluster
	config  *rest.Config
	client  client.Client
	quick   client.WithWatch // waits for nothing but the API server
	bin     string           // directory with kubectl-mssql
	image   string           // SQL Server's image
}

var shared *env

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	if os.Getenv("KUBECTL_MSSQL_E2E") != "1" {
		fmt.Println("e2e: skipped: set KUBECTL_MSSQL_E2E=1 (make e2e) to run on a cluster")
		os.Exit(0)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		return 1, err
	}
	o := cluster.OptionsFromEnv()
	if o.Name == "" {
		o.Name = "kmse2e"
	}
	o.Out = os.Stderr
	c, err := cluster.New(o)
	if err != nil {
		return 1, err
	}
	if os.Getenv("KUBECTL_MSSQL_KEEP") == "" {
		defer func() {
			downCtx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			err = errors.Join(err, c.Down(downCtx))
		}()
	}
	if err := c.Up(ctx, 3); err != nil {
		return 1, err
	}
	e := &env{cluster: c, bin: bin, image: os.Getenv("SQLSERVER_IMAGE")}
	if e.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return 1, err
	}
	scheme, err := factory.Scheme()
	if err != nil {
		return 1, err
	}
	if e.client, err = client.New(e.config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	unlimited := rest.CopyConfig(e.config)
	unlimited.QPS = -1
	if e.quick, err = client.NewWithWatch(unlimited, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	archives := []string{filepath.Join(bin, "kubectl-mssql.tar")}
	if e.image == "" {
		e.image = serverImage
		archives = append(archives, filepath.Join(bin, "mssqlsim.tar"))
	}
	writer, err := buildWriter(ctx, bin)
	if err != nil {
		return 1, err
	}
	for _, a := range append(archives, writer) {
		if err := c.LoadImage(ctx, a); err != nil {
			return 1, fmt.Errorf("%w (make image builds the archives)", err)
		}
	}
	shared = e
	return m.Run(), nil
}

// buildWriter makes the image of the writing client.
func buildWriter(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "image", "writer")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./writer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the writer: %w\n%s", err, out)
	}
	archive := filepath.Join(dir, "writer.tar")
	f, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	defer f.Close()
	err = image.Build(f, image.Options{
		Tags:       []string{writerImage},
		Files:      []image.File{{Path: "/writer", Source: binary, Mode: 0o755}},
		Entrypoint: []string{"/writer"}, User: "65532:65532",
	})
	return archive, err
}
