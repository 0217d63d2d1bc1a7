package objects

import "quorate.dev/quorate/reconcile/decide"

// LastUse returns the version and cluster ID of the member that last ran on a volume, according to the volume claim's
// annotations.
func LastUse(annotations map[string]string) decide.LastUse {
	use := decide.LastUse{
		Version: annotations[AnnotationVersion], StorageVersion: annotations[AnnotationStorageVersion],
	}
	if use.ClusterID.UnmarshalText([]byte(annotations[AnnotationClusterID])) != nil {
		use.ClusterID = 0
	}
	return use
}

// LastUseAnnotations returns the volume claim annotations that record use. Unknown values are empty.
func LastUseAnnotations(use decide.LastUse) map[string]string {
	annotations := map[string]string{
		AnnotationClusterID: "", AnnotationVersion: use.Version, AnnotationStorageVersion: use.StorageVersion,
	}
	if use.ClusterID != 0 {
		annotations[AnnotationClusterID] = use.ClusterID.String()
	}
	return annotations
}
