package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of a declared cluster.
const Kind = "EtcdCluster"

var (
	// GroupVersion is the API group and version of this package.
	GroupVersion = schema.GroupVersion{Group: "etcd.quorate.dev", Version: "v1alpha1"}
	// Resource is the resource of EtcdClusters.
	Resource = GroupVersion.WithResource("etcdclusters")

	schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, &EtcdCluster{}, &EtcdClusterList{})
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})
	// AddToScheme registers the types of this package.
	AddToScheme = schemeBuilder.AddToScheme
)
