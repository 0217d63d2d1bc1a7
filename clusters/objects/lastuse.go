package objects

import "quorate.dev/quorate/reconcile/decide"

// LastUse returns what the annotations of a volume claim say of the etcd that last ran on the volume.
func LastUse(annotations map[string]string) decide.LastUse {
	use := decide.LastUse{Version: annotations[AnnotationVersion], StorageVersion: annotations[AnnotationStorageVersion]}
	if use.ClusterID.UnmarshalText([]byte(annotations[AnnotationClusterID])) != nil {
		use.ClusterID = 0
	}
	return use
}

// LastUseAnnotations are the annotations of a volume claim that say this. A value that is not known is empty.
func LastUseAnnotations(use decide.LastUse) map[string]string {
	annotations := map[string]string{
		AnnotationClusterID: "", AnnotationVersion: use.Version, AnnotationStorageVersion: use.StorageVersion,
	}
	if use.ClusterID != 0 {
		annotations[AnnotationClusterID] = use.ClusterID.String()
	}
	return annotations
}
