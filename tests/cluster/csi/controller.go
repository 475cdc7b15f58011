package csi

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// defaultCapacity is the size of a volume whose claim asks for none.
const defaultCapacity = 1 << 30

type identityServer struct {
	csispec.UnimplementedIdentityServer
	version string
}

func (s *identityServer) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: DriverName, VendorVersion: s.version}, nil
}

func (s *identityServer) GetPluginCapabilities(context.Context, *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	return &csispec.GetPluginCapabilitiesResponse{Capabilities: []*csispec.PluginCapability{
		{Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{
			Type: csispec.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csispec.PluginCapability_VolumeExpansion_{VolumeExpansion: &csispec.PluginCapability_VolumeExpansion{
			Type: csispec.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

func (s *identityServer) Probe(context.Context, *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	return &csispec.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

type controllerServer struct {
	csispec.UnimplementedControllerServer
	store *store
}

func (s *controllerServer) ControllerGetCapabilities(context.Context, *csispec.ControllerGetCapabilitiesRequest) (*csispec.ControllerGetCapabilitiesResponse, error) {
	out := &csispec.ControllerGetCapabilitiesResponse{}
	for _, t := range []csispec.ControllerServiceCapability_RPC_Type{
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csispec.ControllerServiceCapability{
			Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return out, nil
}

func (s *controllerServer) CreateVolume(_ context.Context, r *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	if !validID(r.GetName()) {
		return nil, status.Errorf(codes.InvalidArgument, "volume name %q: want letters, digits, dots, dashes and underscores", r.GetName())
	}
	if err := checkCapabilities(r.GetVolumeCapabilities()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if r.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "volumes cannot be made from a snapshot or another volume")
	}
	required, limit := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	size := required
	if size == 0 {
		size = defaultCapacity
		if limit > 0 && limit < size {
			size = limit
		}
	}
	if size < 0 || limit < 0 || (limit > 0 && size > limit) {
		return nil, status.Errorf(codes.OutOfRange, "a capacity of at least %d and at most %d bytes cannot be had", required, limit)
	}
	v, err := s.store.create(r.GetName(), size)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if v.CapacityBytes < required || (limit > 0 && v.CapacityBytes > limit) {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with %d bytes, which is outside %d to %d", v.ID, v.CapacityBytes, required, limit)
	}
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: v.ID, CapacityBytes: v.CapacityBytes, VolumeContext: r.GetParameters(),
	}}, nil
}

func (s *controllerServer) DeleteVolume(_ context.Context, r *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume id is missing")
	}
	if err := s.store.remove(r.GetVolumeId()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csispec.DeleteVolumeResponse{}, nil
}

func (s *controllerServer) ValidateVolumeCapabilities(_ context.Context, r *csispec.ValidateVolumeCapabilitiesRequest) (*csispec.ValidateVolumeCapabilitiesResponse, error) {
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the volume capabilities are missing")
	}
	if _, err := s.store.get(r.GetVolumeId()); err != nil {
		return nil, volumeError(err)
	}
	if err := checkCapabilities(r.GetVolumeCapabilities()); err != nil {
		//nolint:nilerr // by the CSI specification the answer "not confirmed" carries the reason
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csispec.ValidateVolumeCapabilitiesResponse{Confirmed: &csispec.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

func (s *controllerServer) ControllerExpandVolume(_ context.Context, r *csispec.ControllerExpandVolumeRequest) (*csispec.ControllerExpandVolumeResponse, error) {
	required, limit := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	if required <= 0 {
		return nil, status.Error(codes.InvalidArgument, "the capacity to grow to is missing")
	}
	if limit > 0 && required > limit {
		return nil, status.Errorf(codes.OutOfRange, "a capacity of at least %d and at most %d bytes cannot be had", required, limit)
	}
	v, err := s.store.grow(r.GetVolumeId(), required, false)
	if err != nil {
		return nil, volumeError(err)
	}
	return &csispec.ControllerExpandVolumeResponse{
		CapacityBytes:         v.CapacityBytes,
		NodeExpansionRequired: v.NodeCapacityBytes < v.CapacityBytes,
	}, nil
}

// checkCapabilities refuses what a directory cannot be.
func checkCapabilities(list []*csispec.VolumeCapability) error {
	if len(list) == 0 {
		return errors.New("the volume capabilities are missing")
	}
	for _, c := range list {
		if c.GetBlock() != nil {
			return errors.New("a directory cannot be a block device: use volumeMode Filesystem")
		}
		if c.GetMount() == nil {
			return errors.New("the volume capability has no access type")
		}
	}
	return nil
}

func volumeError(err error) error {
	if errors.Is(err, errNoVolume) {
		return status.Error(codes.NotFound, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
