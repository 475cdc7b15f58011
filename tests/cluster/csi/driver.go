package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Config is one process of the driver.
type Config struct {
	// Volumes is the directory that all processes share.
	Volumes string
	// Socket is the CSI socket to serve.
	Socket string
	// Node is the node's name; empty for the controller service.
	Node string
	// RegistrationDir is the kubelet's plugins_registry; needed with Node.
	RegistrationDir string
	// Version is reported to Kubernetes.
	Version string
}

// Run serves until the context ends.
func Run(ctx context.Context, c Config) error { return serve(ctx, c, kernelMounter{}) }

func serve(ctx context.Context, c Config, m mounter) error {
	if err := os.MkdirAll(c.Volumes, 0o755); err != nil {
		return fmt.Errorf("make the volumes' directory: %w", err)
	}
	s := &store{dir: c.Volumes}
	server := grpc.NewServer()
	csispec.RegisterIdentityServer(server, &identityServer{version: c.Version})
	if c.Node == "" {
		csispec.RegisterControllerServer(server, &controllerServer{store: s})
	} else {
		csispec.RegisterNodeServer(server, &nodeServer{node: c.Node, store: s, mounter: m})
	}
	listener, err := listen(c.Socket)
	if err != nil {
		return err
	}
	servers := []*grpc.Server{server}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()
	if c.Node != "" {
		// The kubelet finds the driver by a socket in its registry, which is what
		// node-driver-registrar serves elsewhere.
		registration := grpc.NewServer()
		registerapi.RegisterRegistrationServer(registration, &registrationServer{endpoint: c.Socket})
		l, err := listen(filepath.Join(c.RegistrationDir, DriverName+"-reg.sock"))
		if err != nil {
			server.Stop()
			return err
		}
		servers = append(servers, registration)
		go func() { failed <- registration.Serve(l) }()
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
	}
	for _, s := range servers {
		s.Stop()
	}
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve %s: %w", c.Socket, err)
	}
	return nil
}

// listen takes the place of a socket that a killed process left.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

type registrationServer struct {
	registerapi.UnsafeRegistrationServer
	endpoint string
}

func (s *registrationServer) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: DriverName, Endpoint: s.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (s *registrationServer) NotifyRegistrationStatus(_ context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !r.GetPluginRegistered() {
		fmt.Fprintln(os.Stderr, "the kubelet refused the driver:", r.GetError())
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}
