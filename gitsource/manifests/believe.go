package manifests

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// keep counts a message whose content is kept, so that a compromised child cannot fill the memory of this process.
func (r *reading) keep(line []byte) error {
	r.kept, r.keptValues = r.kept+int64(len(line)), r.keptValues+values(line)
	l := r.options.Limits
	switch {
	case r.kept > mostKept(l):
		return fmt.Errorf("the confined process sent more than %s of clusters and problems; to allow more, raise "+
			settingBytes+" or "+settingObjects, mebibytes(mostKept(l)))
	case r.keptValues > mostValues(l):
		return fmt.Errorf("the confined process sent clusters and problems with more than %d values; to allow more, raise "+
			settingObjects, mostValues(l))
	}
	return nil
}

// values returns the number of JSON values and keys in a message, which may take far more memory than their text.
func values(line []byte) (n int) {
	inString, escaped := false, false
	for _, c := range line {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{', c == '[', c == ',', c == ':':
			n++
		}
	}
	return n
}

// believe accepts a cluster from the child after checking it. Even a compromised child can only declare a cluster in an
// allowed namespace, and the applied object must be that cluster.
func (r *reading) believe(d Declared) error {
	metadata, _ := d.Applied["metadata"].(map[string]any)
	name := d.Cluster.Namespace + "/" + d.Cluster.Name
	most := r.options.Limits.orDefault().Objects
	switch {
	case len(r.read.Clusters) >= most:
		return fmt.Errorf("invalid response from the confined process: more than %d clusters; to allow more, raise "+
			settingObjects, most)
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
