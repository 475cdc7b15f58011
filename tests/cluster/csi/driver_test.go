package csi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const gib = int64(1) << 30

// fakeMounter remembers what is mounted where.
type fakeMounter struct {
	mu     sync.Mutex
	mounts map[string]string
}

func (m *fakeMounter) bind(source, target string, readOnly bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.mounts[target]; ok {
		return errors.New("mounted twice")
	}
	if readOnly {
		source += " ro"
	}
	m.mounts[target] = source
	return nil
}

func (m *fakeMounter) unmount(target string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mounts, target)
	return nil
}

func (m *fakeMounter) mounted(source, target string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mounts[target] == source || m.mounts[target] == source+" ro", nil
}

// startDriver serves a driver and returns a connection to its CSI socket.
func startDriver(t *testing.T, c Config, m mounter) *grpc.ClientConn {
	t.Helper()
	c.Socket = filepath.Join(t.TempDir(), "csi.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, c, m) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return dialSocket(t, c.Socket)
}

func dialSocket(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mountCapability() []*csispec.VolumeCapability {
	return []*csispec.VolumeCapability{{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}
}

func TestDriver_GrowsAMountedVolumeInTheStepsOfARealOne(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	volumes, m := t.TempDir(), &fakeMounter{mounts: map[string]string{}}
	controller := csispec.NewControllerClient(startDriver(t, Config{Volumes: volumes}, m))
	node := csispec.NewNodeClient(startDriver(t, Config{Volumes: volumes, Node: "node1", RegistrationDir: t.TempDir()}, m))
	target := filepath.Join(t.TempDir(), "pod", "mount")

	created, err := controller.CreateVolume(ctx, &csispec.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csispec.CapacityRange{RequiredBytes: gib}, VolumeCapabilities: mountCapability(),
	})
	if err != nil {
		t.Fatal(err)
	}
	id := created.GetVolume().GetVolumeId()
	publish := &csispec.NodePublishVolumeRequest{VolumeId: id, TargetPath: target, VolumeCapability: mountCapability()[0]}
	for range 2 {
		if _, err := node.NodePublishVolume(ctx, publish); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{target: filepath.Join(volumes, id, "data")}, m.mounts); diff != "" {
		t.Fatalf("mounts (-want +got):\n%s", diff)
	}
	stats := func() int64 {
		t.Helper()
		got, err := node.NodeGetVolumeStats(ctx, &csispec.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetUsage()[0].GetTotal()
	}
	if got := stats(); got != gib {
		t.Errorf("capacity at first: got %d, want %d", got, gib)
	}
	grown, err := controller.ControllerExpandVolume(ctx, &csispec.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 2 * gib},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !grown.GetNodeExpansionRequired() || grown.GetCapacityBytes() != 2*gib {
		t.Errorf("controller's answer: got %v, want 2 GiB and a step on the node", grown)
	}
	if got := stats(); got != gib {
		t.Errorf("capacity before the node's step: got %d, want %d", got, gib)
	}
	if _, err := node.NodeExpandVolume(ctx, &csispec.NodeExpandVolumeRequest{
		VolumeId: id, VolumePath: target, CapacityRange: &csispec.CapacityRange{RequiredBytes: 2 * gib},
	}); err != nil {
		t.Fatal(err)
	}
	if got := stats(); got != 2*gib {
		t.Errorf("capacity after the node's step: got %d, want %d", got, 2*gib)
	}
	unpublish := &csispec.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}
	for range 2 {
		if _, err := node.NodeUnpublishVolume(ctx, unpublish); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := controller.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(volumes)
	if err != nil || len(left) > 0 {
		t.Errorf("left after deletion: %v, %v", left, err)
	}
}

func TestController_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	controller := csispec.NewControllerClient(startDriver(t, Config{Volumes: t.TempDir()}, &fakeMounter{}))
	if _, err := controller.CreateVolume(ctx, &csispec.CreateVolumeRequest{
		Name: "there", CapacityRange: &csispec.CapacityRange{RequiredBytes: gib}, VolumeCapabilities: mountCapability(),
	}); err != nil {
		t.Fatal(err)
	}
	block := []*csispec.VolumeCapability{{AccessType: &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}}}
	for _, tc := range []struct {
		name string
		req  *csispec.CreateVolumeRequest
		want codes.Code
	}{
		{"a name that leaves the directory", &csispec.CreateVolumeRequest{Name: "../x", VolumeCapabilities: mountCapability()}, codes.InvalidArgument},
		{"a block device", &csispec.CreateVolumeRequest{Name: "b", VolumeCapabilities: block}, codes.InvalidArgument},
		{"no capability", &csispec.CreateVolumeRequest{Name: "c"}, codes.InvalidArgument},
		{"less at most than at least", &csispec.CreateVolumeRequest{
			Name: "d", VolumeCapabilities: mountCapability(), CapacityRange: &csispec.CapacityRange{RequiredBytes: 2, LimitBytes: 1},
		}, codes.OutOfRange},
		{"a name that is taken by a smaller volume", &csispec.CreateVolumeRequest{
			Name: "there", VolumeCapabilities: mountCapability(), CapacityRange: &csispec.CapacityRange{RequiredBytes: 2 * gib},
		}, codes.AlreadyExists},
		{"the same volume again", &csispec.CreateVolumeRequest{
			Name: "there", VolumeCapabilities: mountCapability(), CapacityRange: &csispec.CapacityRange{RequiredBytes: gib},
		}, codes.OK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := controller.CreateVolume(ctx, tc.req)
			if got := status.Code(err); got != tc.want {
				t.Errorf("got %v (%v), want %v", got, err, tc.want)
			}
		})
	}
	_, err := controller.ControllerExpandVolume(ctx, &csispec.ControllerExpandVolumeRequest{
		VolumeId: "missing", CapacityRange: &csispec.CapacityRange{RequiredBytes: gib},
	})
	if got := status.Code(err); got != codes.NotFound {
		t.Errorf("grow a missing volume: got %v, want %v", got, codes.NotFound)
	}
}

func TestNode_DoesNotGrowBeyondTheController(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	volumes := t.TempDir()
	if _, err := (&store{dir: volumes}).create("v", gib); err != nil {
		t.Fatal(err)
	}
	node := csispec.NewNodeClient(startDriver(t, Config{Volumes: volumes, Node: "n", RegistrationDir: t.TempDir()}, &fakeMounter{}))
	_, err := node.NodeExpandVolume(ctx, &csispec.NodeExpandVolumeRequest{
		VolumeId: "v", VolumePath: "/x", CapacityRange: &csispec.CapacityRange{RequiredBytes: 2 * gib},
	})
	if got := status.Code(err); got != codes.OutOfRange {
		t.Errorf("got %v, want %v", got, codes.OutOfRange)
	}
}

func TestDriver_TellsTheKubeletWhereItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startDriver(t, Config{Volumes: t.TempDir(), Node: "node1", RegistrationDir: dir}, &fakeMounter{})
	client := registerapi.NewRegistrationClient(dialSocket(t, filepath.Join(dir, DriverName+"-reg.sock")))
	info, err := client.GetInfo(testContext(t), &registerapi.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetType() != registerapi.CSIPlugin || info.GetName() != DriverName || info.GetEndpoint() == "" {
		t.Errorf("got %v", info)
	}
}

func TestStore_MeasuresWhatIsOnDisk(t *testing.T) {
	t.Parallel()
	s := &store{dir: t.TempDir()}
	if _, err := s.create("v", gib); err != nil {
		t.Fatal(err)
	}
	before, _, err := s.usage("v")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dataPath("v"), "f"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	after, files, err := s.usage("v")
	if err != nil {
		t.Fatal(err)
	}
	if after-before < 100_000 || files != 2 {
		t.Errorf("got %d bytes more and %d files, want at least 100000 and 2", after-before, files)
	}
}
