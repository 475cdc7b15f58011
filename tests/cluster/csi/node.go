package csi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mounter is the part of the kernel that the node service needs.
type mounter interface {
	// bind makes source appear at target; target exists.
	bind(source, target string, readOnly bool) error
	// unmount undoes bind; it is no error when nothing is mounted at target.
	unmount(target string) error
	// mounted tells whether target shows source.
	mounted(source, target string) (bool, error)
}

type nodeServer struct {
	csispec.UnimplementedNodeServer
	node    string
	store   *store
	mounter mounter
}

func (s *nodeServer) NodeGetInfo(context.Context, *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	return &csispec.NodeGetInfoResponse{NodeId: s.node}, nil
}

func (s *nodeServer) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	out := &csispec.NodeGetCapabilitiesResponse{}
	for _, t := range []csispec.NodeServiceCapability_RPC_Type{
		csispec.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csispec.NodeServiceCapability{
			Type: &csispec.NodeServiceCapability_Rpc{Rpc: &csispec.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return out, nil
}

func (s *nodeServer) NodePublishVolume(_ context.Context, r *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	target := r.GetTargetPath()
	if target == "" {
		return nil, status.Error(codes.InvalidArgument, "the target path is missing")
	}
	if err := checkCapabilities([]*csispec.VolumeCapability{r.GetVolumeCapability()}); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if _, err := s.store.get(r.GetVolumeId()); err != nil {
		return nil, volumeError(err)
	}
	source := s.store.dataPath(r.GetVolumeId())
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, status.Errorf(codes.Internal, "make the target: %v", err)
	}
	done, err := s.mounter.mounted(source, target)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "look at the target: %v", err)
	}
	if !done {
		if err := s.mounter.bind(source, target, r.GetReadonly()); err != nil {
			return nil, status.Errorf(codes.Internal, "mount %s: %v", r.GetVolumeId(), err)
		}
	}
	return &csispec.NodePublishVolumeResponse{}, nil
}

func (s *nodeServer) NodeUnpublishVolume(_ context.Context, r *csispec.NodeUnpublishVolumeRequest) (*csispec.NodeUnpublishVolumeResponse, error) {
	target := r.GetTargetPath()
	if target == "" || r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume id or the target path is missing")
	}
	if err := s.mounter.unmount(target); err != nil {
		return nil, status.Errorf(codes.Internal, "unmount %s: %v", r.GetVolumeId(), err)
	}
	// Not RemoveAll: were the volume still mounted, that would delete its data.
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "remove the target: %v", err)
	}
	return &csispec.NodeUnpublishVolumeResponse{}, nil
}

func (s *nodeServer) NodeExpandVolume(_ context.Context, r *csispec.NodeExpandVolumeRequest) (*csispec.NodeExpandVolumeResponse, error) {
	v, err := s.store.get(r.GetVolumeId())
	if err != nil {
		return nil, volumeError(err)
	}
	if r.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume path is missing")
	}
	size := r.GetCapacityRange().GetRequiredBytes()
	if size == 0 {
		size = v.CapacityBytes
	}
	if size > v.CapacityBytes {
		return nil, status.Errorf(codes.OutOfRange, "volume %s has %d bytes, not %d: the controller has not grown it", v.ID, v.CapacityBytes, size)
	}
	if v, err = s.store.grow(v.ID, size, true); err != nil {
		return nil, volumeError(err)
	}
	return &csispec.NodeExpandVolumeResponse{CapacityBytes: v.NodeCapacityBytes}, nil
}

func (s *nodeServer) NodeGetVolumeStats(_ context.Context, r *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	v, err := s.store.get(r.GetVolumeId())
	if err != nil {
		return nil, volumeError(err)
	}
	if r.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume path is missing")
	}
	if _, err := os.Stat(r.GetVolumePath()); err != nil {
		return nil, status.Errorf(codes.NotFound, "volume path: %v", err)
	}
	used, files, err := s.store.usage(v.ID)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csispec.NodeGetVolumeStatsResponse{Usage: []*csispec.VolumeUsage{
		{Unit: csispec.VolumeUsage_BYTES, Total: v.NodeCapacityBytes, Used: used, Available: max(v.NodeCapacityBytes-used, 0)},
		{Unit: csispec.VolumeUsage_INODES, Used: files},
	}}, nil
}

// diskBytes is what the file takes on disk, in bytes.
func diskBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
