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
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// stateOf is everything that the decision about a cluster rests on.
type stateOf struct {
	Kubernetes string       `json:"kubernetes,omitempty"`
	Namespace  string       `json:"namespace"`
	Name       string       `json:"name"`
	Decision   *decision    `json:"decision,omitempty"`
	State      decide.State `json:"state"`
	// Revision that declared it, when that was committed, and the conditions, by the status of the custom resource;
	// none but in a look.
	Revision     string             `json:"revision,omitempty"`
	RevisionTime *metav1.Time       `json:"revisionTime,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
	Error        string             `json:"error,omitempty"`
}

func newState(c Cluster) stateOf {
	return stateOf{c.Kubernetes, c.Namespace, c.Name, newDecision(c.Decision), c.State, c.told().DeclaredRevision,
		c.told().DeclaredRevisionTime, c.told().Conditions, c.Error}
}

func newStates(clusters []Cluster) []stateOf {
	list := []stateOf{}
	for _, c := range clusters {
		list = append(list, newState(c))
	}
	return list
}

// States renders, for machines and for bug reports, everything that each decision rests on.
func States(w io.Writer, r Report) error { return Encode(w, newStates(r.Clusters)) }

// State renders the same of one cluster.
func State(w io.Writer, c Cluster) error { return Encode(w, newState(c)) }

// StatesYAML is States as YAML.
func StatesYAML(w io.Writer, r Report) error { return encodeYAML(w, newStates(r.Clusters)) }

// StateYAML is State as YAML.
func StateYAML(w io.Writer, c Cluster) error { return encodeYAML(w, newState(c)) }

// encodeYAML writes a value as YAML that can be shown on a terminal and in the log of a CI system: what a terminal
// would obey is escaped in its texts as it is in those for people.
func encodeYAML(w io.Writer, value any) error {
	document, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // revisions are larger than what a float holds
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

// harmless is a value whose texts are each one line that can be shown. YAML breaks lines at spaces, so that no word may
// begin with a command.
func harmless(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(visible.Line(v), " ::", " : :")
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

// Names writes, for scripts, what kubectl takes as arguments: an EtcdCluster per line, and its namespace. What is no
// name in Kubernetes is not written, since scripts take it for arguments as well, and is the error.
func Names(w io.Writer, r Report) error {
	var b strings.Builder
	var errs []error
	for _, c := range r.Clusters {
		if len(validation.IsDNS1123Label(c.Namespace))+len(validation.IsDNS1123Subdomain(c.Name)) > 0 {
			errs = append(errs, fmt.Errorf("%s is no name that Kubernetes allows, and is left out",
				visible.Line(c.Key())))
			continue
		}
		fmt.Fprintf(&b, "%s.%s/%s --namespace %s\n", strings.ToLower(v1alpha1.Kind), v1alpha1.GroupVersion.Group,
			c.Name, c.Namespace)
	}
	_, err := io.WriteString(w, b.String())
	return errors.Join(append(errs, err)...)
}
