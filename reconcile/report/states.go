package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// stateOf contains everything that the decision on a cluster is based on.
type stateOf struct {
	Kubernetes string       `json:"kubernetes,omitempty"`
	Namespace  string       `json:"namespace"`
	Name       string       `json:"name"`
	Decision   *decision    `json:"decision,omitempty"`
	State      decide.State `json:"state"`
	// Revision is the revision that declared the cluster, RevisionTime is its commit time, and Conditions are the
	// conditions in the status of the custom resource. They are only set by ObserveAll.
	Revision     string             `json:"revision,omitempty"`
	RevisionTime *metav1.Time       `json:"revisionTime,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
	Error        string             `json:"error,omitempty"`
}

func newState(c Cluster) stateOf {
	return stateOf{c.Kubernetes, c.Namespace, c.Name, newDecision(c.Decision), c.State, c.status().DeclaredRevision,
		c.status().DeclaredRevisionTime, c.status().Conditions, c.Error}
}

func newStates(clusters []Cluster) []stateOf {
	list := []stateOf{}
	for _, c := range clusters {
		list = append(list, newState(c))
	}
	return list
}

// States renders, as JSON, everything that the decisions are based on, for machines and bug reports.
func States(w io.Writer, r Report) error { return Encode(w, newStates(r.Clusters)) }

// State is like States, but renders a single cluster.
func State(w io.Writer, c Cluster) error { return Encode(w, newState(c)) }

// StatesYAML is like States, but renders YAML.
func StatesYAML(w io.Writer, r Report) error { return encodeYAML(w, newStates(r.Clusters)) }

// StateYAML is like State, but renders YAML.
func StateYAML(w io.Writer, c Cluster) error { return encodeYAML(w, newState(c)) }

// encodeYAML writes a value as YAML that is safe for terminals and CI logs: control characters in strings are escaped
// as in text output.
func encodeYAML(w io.Writer, value any) error {
	document, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // a float cannot hold every revision
	var generic any
	if err := decoder.Decode(&generic); err != nil {
		return err
	}
	if document, err = json.Marshal(harmless(generic)); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(document)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// harmless returns the value with each string as one safe line. YAML wraps lines at spaces, so no word may begin with a
// CI command.
func harmless(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(printable.Line(v), " ::", " : :")
	case []any:
		for i := range v {
			v[i] = harmless(v[i])
		}
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			v[key] = harmless(v[key])
		}
	}
	return value
}

// Names writes kubectl arguments for scripts: one EtcdCluster per line, with its namespace. Names that are invalid in
// Kubernetes are omitted and reported as an error, because scripts would use them as arguments.
func Names(w io.Writer, r Report) error {
	var b strings.Builder
	var errs []error
	for _, c := range r.Clusters {
		if len(validation.IsDNS1123Label(c.Namespace))+len(validation.IsDNS1123Subdomain(c.Name)) > 0 {
			errs = append(errs, fmt.Errorf("%s is not a valid Kubernetes name; omitted",
				printable.Line(c.Key())))
			continue
		}
		fmt.Fprintf(&b, "%s.%s/%s --namespace %s\n", strings.ToLower(v1alpha1.Kind), v1alpha1.GroupVersion.Group,
			c.Name, c.Namespace)
	}
	_, err := io.WriteString(w, b.String())
	return errors.Join(append(errs, err)...)
}
