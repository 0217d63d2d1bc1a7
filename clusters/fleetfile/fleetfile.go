// Package fleetfile reads the file that lists the Kubernetes clusters of a run. Like flags, the file comes from the
// administrator who starts the run, and never from a repository.
package fleetfile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/clusters/shard"
)

// Cluster is a Kubernetes cluster and the selection of the declarations that apply to it.
type Cluster struct {
	// Name is the name that reports show.
	Name string
	// Kubeconfig is the path of a kubeconfig, and Context is one of its contexts. Either may be empty, like the flag of
	// the same name.
	Kubeconfig, Context string
	// Secret is the NAMESPACE/NAME of a Secret that contains a kubeconfig. It replaces Kubeconfig and Context.
	Secret string
	// Path is the path of the declarations in the repository, or empty if all Kubernetes clusters use the same path.
	Path string
	// Shard is the shard of the cluster's etcd clusters, as i/n, or empty if all Kubernetes clusters use the same
	// shard.
	Shard string
}

// Problem is an error in the file.
type Problem struct {
	Line    int
	Message string
}

// MostBytes is the maximum size of a file.
const MostBytes = 1 << 20

const (
	longestName = 63
	wanted      = "expected a list of clusters: - name: NAME, with kubeconfig:, context: or secret: NAMESPACE/NAME"
)

var (
	name   = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
	secret = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
)

// Parse parses a fleet file. It returns either its clusters or all its problems.
func Parse(text []byte) ([]Cluster, []Problem) {
	var p parser
	list := p.file(text)
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, p.problems
	}
	return list, nil
}

// parser collects problems.
type parser struct{ problems []Problem }

func (p *parser) problem(at *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, Problem{at.Line, fmt.Sprintf(format, args...)})
}

func (p *parser) file(text []byte) []Cluster {
	if len(text) > MostBytes {
		p.problem(&yaml.Node{Line: 1}, "the file is larger than %d bytes", MostBytes)
		return nil
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		p.problem(&yaml.Node{Line: 1}, "the file is empty: %s", wanted)
		return nil
	case err != nil:
		p.problem(&yaml.Node{Line: lineOf(err)}, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		p.problem(&document, "expected one document")
		return nil
	}
	top := p.mapping(document.Content[0], "the file", "clusters")
	clusters := top["clusters"]
	if clusters == nil || clusters.Kind != yaml.SequenceNode || len(clusters.Content) == 0 {
		if len(p.problems) == 0 {
			p.problem(document.Content[0], "clusters: %s", wanted)
		}
		return nil
	}
	var list []Cluster
	lines := map[string]int{}
	for i, node := range clusters.Content {
		c := p.cluster(node, fmt.Sprintf("clusters[%d]", i))
		if line, taken := lines[c.Name]; taken && c.Name != "" {
			p.problem(node, "clusters[%d].name: %q is already the name of the cluster in line %d", i, c.Name, line)
		}
		lines[c.Name] = node.Line
		list = append(list, c)
	}
	return list
}

// cluster parses an entry of the list.
func (p *parser) cluster(node *yaml.Node, at string) Cluster {
	fields := p.mapping(node, at, "name", "kubeconfig", "context", "secret", "path", "shard")
	if fields == nil {
		return Cluster{}
	}
	text := func(field string) string { return p.text(fields[field], at+"."+field) }
	c := Cluster{Name: text("name"), Kubeconfig: text("kubeconfig"), Context: text("context"), Secret: text("secret"),
		Path: text("path"), Shard: text("shard")}
	given := func(field string) bool { return fields[field] != nil }
	switch {
	case !given("name"):
		p.problem(node, "%s.name is required", at)
	case c.Name != "" && (!name.MatchString(c.Name) || len(c.Name) > longestName):
		p.problem(fields["name"], "%s.name: %q: expected up to %d lowercase letters, digits, - and .", at, c.Name,
			longestName)
	}
	switch {
	case given("secret") && (given("kubeconfig") || given("context")):
		p.problem(node, "%s: the secret already contains a kubeconfig; set either secret, or kubeconfig, context or "+
			"both", at)
	case !given("secret") && !given("kubeconfig") && !given("context"):
		p.problem(node, "%s: expected kubeconfig, context, both, or secret", at)
	case c.Secret != "" && !secret.MatchString(c.Secret):
		p.problem(fields["secret"], "%s.secret: %q: expected NAMESPACE/NAME", at, c.Secret)
	}
	if _, err := shard.Parse(c.Shard); c.Shard != "" && err != nil {
		p.problem(fields["shard"], "%s.shard: %q: %v", at, c.Shard, err)
	}
	return c
}

// mapping returns the values of a mapping by field, or nil if node is not a mapping. Unknown fields are problems.
func (p *parser) mapping(node *yaml.Node, at string, fields ...string) map[string]*yaml.Node {
	if node.Kind != yaml.MappingNode {
		p.problem(node, "%s: expected fields: %s", at, strings.Join(fields, ", "))
		return nil
	}
	found := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(fields, key.Value):
			p.problem(key, "%s: unknown field %q; fields are %s", at, key.Value, strings.Join(fields, ", "))
		case found[key.Value] != nil:
			p.problem(key, "%s.%s is set twice", at, key.Value)
		default:
			found[key.Value] = value
		}
	}
	return found
}

// text returns a string value, or "" if the field is omitted. Other types and empty strings are problems.
func (p *parser) text(node *yaml.Node, at string) string {
	switch {
	case node == nil:
		return ""
	case node.Kind != yaml.ScalarNode || node.Tag != "!!str":
		p.problem(node, "%s: must be a string, in quotes if it looks like another type", at)
	case strings.TrimSpace(node.Value) == "":
		p.problem(node, "%s: the value is empty; omit the field", at)
	default:
		return node.Value
	}
	return ""
}

var line = regexp.MustCompile(`^yaml: line ([0-9]+):`)

// lineOf returns the line number in a YAML error, or 1.
func lineOf(err error) int {
	n := 1
	if found := line.FindStringSubmatch(err.Error()); found != nil {
		_, _ = fmt.Sscan(found[1], &n) // digits
	}
	return n
}
