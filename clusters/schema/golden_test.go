package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// TestGolden checks the examples of valid and invalid objects in testdata. Each example is merged into the smallest
// valid cluster:
//
//	validate    the YAML is a new cluster: everything the API server would refuse, and our warnings
//	update      two documents: the old cluster and the new one
//	default     the spec with its defaults
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "validate":
				return verdict(t, cluster(t, d.Input), nil)
			case "update":
				before, after, _ := strings.Cut(d.Input, "\n---\n")
				return verdict(t, cluster(t, after), cluster(t, before))
			case "default":
				object := cluster(t, d.Input)
				setDefaults(t, object)
				out, err := yaml.Marshal(object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			default:
				d.Fatalf(t, "unknown directive %s", d.Cmd)
				return ""
			}
		})
	})
}

const smallest = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: a, namespace: default}
spec: {version: 3.6.5}
`

func cluster(t *testing.T, input string) map[string]any {
	t.Helper()
	return merged(decodeYAML(t, smallest), decodeYAML(t, input))
}

func decodeYAML(t *testing.T, input string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(input), &object); err != nil {
		t.Fatal(err)
	}
	return normalize(t, object)
}

// normalize converts numbers to the types that the API server uses.
func normalize(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var normal map[string]any
	if err := k8sjson.Unmarshal(encoded, &normal); err != nil {
		t.Fatal(err)
	}
	return normal
}

// merged merges over into base. A null value removes a field.
func merged(base, over map[string]any) map[string]any {
	result := maps.Clone(base)
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, wasMap := result[key].(map[string]any)
		switch {
		case isMap && wasMap:
			result[key] = merged(below, inner)
		case value == nil:
			delete(result, key)
		default:
			result[key] = value
		}
	}
	return result
}

func setDefaults(t *testing.T, object map[string]any) {
	t.Helper()
	if err := Default(object); err != nil {
		t.Fatal(err)
	}
}

func verdict(t *testing.T, object, old map[string]any) string {
	t.Helper()
	var lines []string
	for _, path := range UnknownFields(object) {
		lines = append(lines, strings.TrimSpace(path+": unknown field "+SimilarField(path)))
	}
	setDefaults(t, object)
	if old != nil {
		setDefaults(t, old)
	}
	for _, err := range Validate(object, old) {
		lines = append(lines, err.Error())
	}
	if len(lines) == 0 {
		lines = append([]string{"valid"}, warningsOf(t, object)...)
	}
	return strings.Join(lines, "\n")
}

func warningsOf(t *testing.T, object map[string]any) (lines []string) {
	t.Helper()
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var c v1alpha1.EtcdCluster
	if err := json.Unmarshal(encoded, &c); err != nil {
		t.Fatal(err)
	}
	for _, w := range Warnings(c.Spec) {
		lines = append(lines, "warning: "+w)
	}
	return lines
}

// TestEveryRuleHasAnExample checks that every rule of the definition refuses at least one example.
func TestEveryRuleHasAnExample(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples.Write(content)
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]bool{}
	collectRules(c.structural, messages)
	if len(messages) < 20 {
		t.Fatalf("only %d rules found", len(messages))
	}
	for message := range messages {
		if !strings.Contains(examples.String(), message) {
			t.Errorf("no example is refused with %q", message)
		}
	}
}

func collectRules(s *structuralschema.Structural, messages map[string]bool) {
	for _, rule := range s.XValidations {
		messages[rule.Message] = true
	}
	for _, property := range s.Properties {
		collectRules(&property, messages)
	}
	if s.Items != nil {
		collectRules(s.Items, messages)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		collectRules(s.AdditionalProperties.Structural, messages)
	}
}

// TestEveryOptionHasAKind checks that each supported option has a kind, by which invalid values are rejected.
func TestEveryOptionHasAKind(t *testing.T) {
	taken := regexp.MustCompile(`self\.all\(k, k in \[('[^\]]*')\]\)`).FindSubmatch(bytes.Join(bytes.Fields(crd.YAML), []byte(" ")))
	if taken == nil {
		t.Fatal("the rule that lists the options is gone")
	}
	options := strings.Split(string(bytes.ReplaceAll(taken[1], []byte("'"), nil)), ", ")
	if len(options) < 15 {
		t.Fatalf("only %q found", options)
	}
	for _, option := range options {
		errs := Validate(defaulted(t, "spec: {etcd: {options: {"+option+": x-}}}"), nil)
		if len(errs) != 1 {
			t.Errorf("option %s: %v", option, errs)
		}
	}
}
