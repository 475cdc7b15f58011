package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of both kinds, and the prefix of our labels and annotations.
const Group = "kubectl-mssql.io"

// GroupVersion is the version that this package defines.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers both kinds and their lists.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&SQLServerInstance{}, &SQLServerInstanceList{},
		&SQLServerAvailabilityGroup{}, &SQLServerAvailabilityGroupList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
