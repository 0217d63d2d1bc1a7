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
		return fmt.Errorf("invalid response from the confined process: "+
			"the source may not declare the cluster %s in its namespace", name)
	case metadata["name"] != d.Cluster.Name || metadata["namespace"] != d.Cluster.Namespace,
		d.Applied["kind"] != v1alpha1.Kind || d.Applied["apiVersion"] != v1alpha1.GroupVersion.String():
		return fmt.Errorf("invalid response from the confined process: "+
			"the content for the cluster %s would be applied to a different object", name)
	}
	r.read.Clusters = append(r.read.Clusters, d)
	return nil
}

// believeProblem accepts a problem from the child if it concerns the source or a cluster in an allowed namespace.
func (r *reading) believeProblem(p Problem) error {
	if namespace, _, ofCluster := strings.Cut(p.Cluster, "/"); ofCluster && !r.options.allows(namespace) {
		return fmt.Errorf("invalid response from the confined process: it reports a problem with %s, but the source "+
			"may not declare clusters there", p.Cluster)
	}
	r.read.Problems = append(r.read.Problems, p)
	return nil
}
