// Package csi is a CSI driver for the test cluster: a volume is a directory, and
// a pod's mount is a bind mount of it. What it is for is expansion: the real
// provisioner, resizer and kubelet drive it, so that a grown PVC goes through
// every step of a real one.
//
// A volume's size is recorded, reported in the kubelet's volume statistics and
// not enforced.
package csi

// DriverName is the provisioner's name in the StorageClass.
const DriverName = "local.csi.kubectl-mssql.io"
