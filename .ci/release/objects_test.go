package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// object is a Kubernetes object.
type object = map[string]any

// name returns the display name of an object.
func name(o object) string {
	metadata, _ := o["metadata"].(object)
	return fmt.Sprintf("%v %v/%v", o["kind"], metadata["namespace"], metadata["name"])
}

// objects returns the objects in YAML documents, by name.
func objects(t *testing.T, texts ...string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, text := range texts {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var o object
			if err == nil {
				o, err = parse(string(document))
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if len(o) == 0 {
				continue
			}
			if all[name(o)] != nil {
				t.Fatalf("%s is there twice", name(o))
			}
			all[name(o)] = o
		}
	}
	return all
}

// parsed caches documents as JSON, because parsing the CustomResourceDefinition takes a long time.
var parsed = map[string][]byte{}

func parse(document string) (object, error) {
	text, is := parsed[document]
	if !is {
		var err error
		if text, err = yaml.YAMLToJSON([]byte(document)); err != nil {
			return nil, err
		}
		parsed[document] = text
	}
	var o object
	return o, json.Unmarshal(text, &o)
}

// keeps removes the annotation with which Helm keeps the CustomResourceDefinition, and reports whether it was set.
func keeps(all map[string]object) bool {
	for _, o := range all {
		if o["kind"] == "CustomResourceDefinition" {
			annotations, _ := o["metadata"].(object)["annotations"].(object)
			kept := annotations["helm.sh/resource-policy"] == "keep"
			delete(annotations, "helm.sh/resource-policy")
			return kept
		}
	}
	return false
}

func requireSame(t *testing.T, got, want map[string]object) {
	t.Helper()
	if !keeps(got) {
		t.Error("the CustomResourceDefinition would go with the release, and all clusters with it")
	}
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s is\n%v\nwant\n%v", name, got[name], want[name])
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is one too many", name)
		}
	}
}
