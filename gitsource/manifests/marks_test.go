package manifests

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestMarksNeverExceedNodes checks that there are never more marks than nodes, so that nothing within the limits is
// rejected. Ordinary documents rarely have fewer than half as many marks as nodes.
func TestMarksNeverExceedNodes(t *testing.T) {
	for name, content := range map[string]string{
		"cluster":         clusterNamed("a"),
		"flow":            "{a: [b, c, {d: e}], 'f': \"g\"}",
		"JSON":            `{"a":["b","c",{"d":"e:,[{"}],"f":"\"[,,"}`,
		"sequences":       "- a\n-\n  - b\n- ? c\n  : d\n",
		"text":            "a: |\n  [b, c]: {d, e}\n\n  - f\nb: >-\n  ,,,,,\nc: d\n",
		"text in a list":  "- |2 # text\n  [b, c]: {d, e}\n- b\n",
		"quoted text":     "a: 'it''s, [b, c]'\nb: \"x\\\"[,\n  ,,,\"\n",
		"comments":        "# a: [b, c]\nd: e # {f, g}\n",
		"plain pipe":      "a: b | c\nd: [e > f, g]\n",
		"windows":         "a: |\r\n  [b, c]\r\nd: e\r\n",
		"trailing commas": "[a, b, c]",
	} {
		t.Run(name, func(t *testing.T) {
			var document yaml.Node
			if err := yaml.Unmarshal([]byte(content), &document); err != nil {
				t.Fatal(err)
			}
			nodes := 0
			walkNodes(document.Content[0], func(*yaml.Node) { nodes++ })
			marks := 0
			for _, mark := crowded([]byte(content), marks); mark >= 0; _, mark = crowded([]byte(content), marks) {
				marks++
			}
			if marks > nodes || 3*marks+1 < nodes {
				t.Errorf("%d marks, %d nodes", marks, nodes)
			}
		})
	}
}

// TestDocumentsBeforeTooLargeOneAreRead checks that documents before a document with too many nodes are read.
func TestDocumentsBeforeTooLargeOneAreRead(t *testing.T) {
	content := clusterNamed("a") + "---\n" + strings.Repeat("x", 7) + ": [" + strings.Repeat("a,", 200_000) + "]\n---\n" + clusterNamed("b")
	read, err := Read(t.Context(), treeOf(map[string]string{"a.yaml": content}), Options{})
	want := "a.yaml:8: has more than 100000 nodes; to allow more, raise limits.objects"
	if err != nil || len(read.Clusters) != 1 || len(read.Problems) != 1 || read.Problems[0].String() != want {
		t.Errorf("clusters %v, problems %v, error %v", read.Clusters, read.Problems, err)
	}
}
