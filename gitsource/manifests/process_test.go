package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// TestCompromisedReaderKeepsToAllowedNamespaces checks that a child that was compromised by its source can declare
// clusters only in allowed namespaces. The object to apply must be the declared cluster.
func TestCompromisedReaderKeepsToAllowedNamespaces(t *testing.T) {
	object := func(namespace, name string) string {
		return fmt.Sprintf(`{"apiVersion":"etcd.quorate.dev/v1alpha1","kind":"EtcdCluster","metadata":{"name":%q,"namespace":%q},"spec":{"version":"3.6.5"}}`, name, namespace)
	}
	for _, test := range []struct {
		name, cluster, applied string
		believed               bool
	}{
		{"as it is", object("dev", "a"), object("dev", "a"), true},
		{"in a namespace of others", object("prod", "a"), object("prod", "a"), false},
		{"applied in a namespace of others", object("dev", "a"), object("prod", "a"), false},
		{"applied as another cluster", object("dev", "a"), object("dev", "b"), false},
		{"applied as nothing", object("dev", "a"), `{}`, false},
		{"applied as another kind", object("dev", "a"), `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"dev"}}`, false},
	} {
		said, err := json.Marshal(message{Cluster: &wireCluster{Cluster: json.RawMessage(test.cluster), Applied: json.RawMessage(test.applied)}})
		if err != nil {
			t.Fatal(err)
		}
		r := reading{ctx: t.Context(), options: Options{AllowNamespaces: []string{"dev"}}}
		if _, _, err := r.hear(said); (err == nil) != test.believed || len(r.read.Clusters) > 0 != test.believed {
			t.Errorf("%s: %v, and %d clusters", test.name, err, len(r.read.Clusters))
		}
	}
}

// TestOnlySourceDecidesMissingPath checks that only the source's answers determine whether a path is missing, not the
// child that parses the files.
func TestOnlySourceDecidesMissingPath(t *testing.T) {
	there := map[string]bool{"clusters": true, "clusters/base": true}
	for _, test := range []struct {
		path    string
		asked   []string
		missing string
	}{
		{"clusters/base", []string{"clusters", "clusters/base"}, ""},
		{"clusters/base", []string{"clusters/base", "components"}, ""}, // named by a kustomization
		{"clusters/prod", []string{"clusters", "clusters/prod"}, "clusters/prod"},
		{"apps/etcd", []string{"apps"}, "apps"},
		{"clusters/prod", nil, ""},
	} {
		for _, last := range []message{{Error: "path " + test.path + " does not exist"}, {}} {
			r := reading{ctx: t.Context(), options: Options{Path: test.path}, tell: func(q Question) Answer { return Answer{Missing: !there[q.Kind]} }}
			for _, name := range test.asked {
				if _, _, err := r.hear(encoded(t, message{Question: Question{Kind: name}})); err != nil {
					t.Fatal(err)
				}
			}
			_, done, err := r.hear(encoded(t, last))
			var missing MissingError
			if errors.As(err, &missing); missing.Name != test.missing || !done {
				t.Errorf("%+v, and at last %+v: %v", test, last, err)
			}
		}
	}
}

func encoded(t *testing.T, m message) []byte {
	t.Helper()
	line, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestProblemsBlockOnlyAllowedNamespaces checks that problems reported by the child can block only clusters in allowed
// namespaces.
func TestProblemsBlockOnlyAllowedNamespaces(t *testing.T) {
	for cluster, believed := range map[string]bool{"": true, "dev/a": true, "prod/a": false} {
		said, err := json.Marshal(message{Problem: &Problem{Message: "x", Cluster: cluster}})
		if err != nil {
			t.Fatal(err)
		}
		r := reading{ctx: t.Context(), options: Options{AllowNamespaces: []string{"dev"}}}
		if _, _, err := r.hear(said); (err == nil) != believed || len(r.read.Problems) > 0 != believed {
			t.Errorf("%q: %v, and %d problems", cluster, err, len(r.read.Problems))
		}
	}
}
