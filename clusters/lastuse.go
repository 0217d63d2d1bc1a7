package clusters

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
)

// annotateClaims annotates claims with the version and cluster ID of the member that uses the volume, if this pass has
// observed them. Like the status, the annotations are only reports, so a failure does not delay anything else.
func (c *cluster) annotateClaims(ctx context.Context) error {
	var failures []error
	for _, r := range c.state.OutdatedUses() {
		name, wanted := objects.VolumeClaimName(c.state.Name, r.Ordinal), objects.LastUseAnnotations(r.LastUse)
		kept, err := c.kube().AnnotateClaim(ctx, c.target.Cluster.Namespace, name, r.VolumeUID, wanted)
		switch {
		case kube.IsConflict(err): // the claim has been replaced
		case err != nil:
			failures = append(failures, err)
		case objects.LastUse(kept) != r.LastUse:
			failures = append(failures, fmt.Errorf("annotate PersistentVolumeClaim %s: the API server did not keep "+
				"%s, %s and %s. Find the admission policy or webhook that removes them", name,
				objects.AnnotationClusterID, objects.AnnotationVersion, objects.AnnotationStorageVersion))
		}
	}
	return errors.Join(failures...)
}
