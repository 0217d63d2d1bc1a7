// Package crd holds the generated CustomResourceDefinition of EtcdCluster.
package crd

import _ "embed"

// YAML is the CustomResourceDefinition, apiextensions.k8s.io/v1.
//
//go:embed etcd.quorate.dev_etcdclusters.yaml
var YAML []byte
