package v1alpha1

//go:generate go tool controller-gen object paths=.
//go:generate go tool controller-gen crd:generateEmbeddedObjectMeta=false paths=. output:crd:dir=crd
//go:generate cp crd/etcd.quorate.dev_etcdclusters.yaml ../../deploy/chart/files/etcdclusters.yaml
