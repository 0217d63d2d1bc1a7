package manifests

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// believe accepts a cluster from the child after checking it. Even a compromised child can only declare a cluster in an
// allowed namespace, and the applied object must be that cluster.
func (r *reading) believe(d Declared) error {
	metadata, _ := d.Applied["metadata"].(map[string]any)
	name := d.Cluster.Namespace + "/" + d.Cluster.Name
	switch {
	case !r.options.allows(d.Cluster.Namespace):
		return fmt.Errorf("believe the process that reads in confinement: "+
			"the cluster %s is where the source may declare none", name)
	case metadata["name"] != d.Cluster.Name || metadata["namespace"] != d.Cluster.Namespace,
		d.Applied["kind"] != v1alpha1.Kind || d.Applied["apiVersion"] != v1alpha1.GroupVersion.String():
		return fmt.Errorf("believe the process that reads in confinement: "+
			"what it says of the cluster %s would be applied as another object", name)
	}
	r.read.Clusters = append(r.read.Clusters, d)
	return nil
}

// believeProblem accepts a problem from the child if it concerns the source or a cluster in an allowed namespace.
func (r *reading) believeProblem(p Problem) error {
	if namespace, _, ofCluster := strings.Cut(p.Cluster, "/"); ofCluster && !r.options.allows(namespace) {
		return fmt.Errorf("believe the process that reads in confinement: it tells a problem of %s, where the source "+
			"may declare no cluster", p.Cluster)
	}
	r.read.Problems = append(r.read.Problems, p)
	return nil
}
