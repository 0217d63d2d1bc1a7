package manifests

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// keep counts the bytes of a message whose content is kept, and the memory that the content takes. It returns an error
// if a limit is exceeded, so that neither an honest nor a compromised child can fill the memory of this process.
func (r *reading) keep(line []byte, memory int64) error {
	r.kept, r.keptMemory = r.kept+int64(len(line)), r.keptMemory+memory
	l := r.options.Limits.orDefault()
	switch {
	case r.kept > mostKept(l):
		return fmt.Errorf("the confined process sent more than %s of clusters and problems; to allow more, raise "+
			settingBytes+" or "+settingObjects, mebibytes(mostKept(l)))
	case r.keptMemory > l.KeptBytes:
		return fmt.Errorf("the declared clusters take more than %s of memory; declare fewer clusters or shorter "+
			"lists, or raise "+settingObjects, mebibytes(l.KeptBytes))
	}
	return nil
}

// footprint returns an estimate of the memory, in bytes, that JSON takes when it is decoded into untyped values. Small
// values may take far more memory than their text: a map with a single key takes 336 bytes.
func footprint(text []byte) int64 {
	const aMap, aList, aValue = 320, 96, 40
	n, inString, escaped := int64(len(text)), false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{':
			n += aMap
		case c == 'n': // a null in a list may become an empty struct
			n += 2 * aMap
		case c == '[':
			n += aList
		case c == ',', c == ':':
			n += aValue
		}
	}
	return n
}

// footprint returns an estimate of the memory that the cluster takes when it is decoded from line. The fields of
// Cluster are decoded into structs, which take half as much memory as maps. The text of the fields takes the same
// memory in both.
func (t wireCluster) footprint(line []byte) int64 {
	return footprint(line) - (footprint(t.Cluster)-int64(len(t.Cluster)))/2
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
