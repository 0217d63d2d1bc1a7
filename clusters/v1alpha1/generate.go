package v1alpha1

//go:generate go tool controller-gen object paths=.
//go:generate go tool controller-gen crd:generateEmbeddedObjectMeta=false paths=. output:crd:dir=crd
