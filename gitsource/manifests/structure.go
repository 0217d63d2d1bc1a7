package manifests

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkStructure checks a document before it is decoded. It reports aliases that contain themselves or expand beyond
// the limits, duplicate keys, keys that are not text, and values that JSON does not support. Timestamps, which JSON
// does not support either, are kept as text exactly as written.
func (f *files) checkStructure(file string, document *yaml.Node) []Problem {
	if p := f.checkExpansion(document); p != nil {
		return []Problem{{File: file, Line: p.line, Message: p.message}}
	}
	var problems []Problem
	walkNodes(document, func(n *yaml.Node) {
		if len(problems) > maxProblems {
			return
		}
		for _, p := range f.checkNode(n) {
			problems = append(problems, Problem{File: file, Line: p.line, Message: p.message})
		}
	})
	return problems
}

// finding is a problem without its file.
type finding struct {
	line    int
	message string
}

func (f *finding) Error() string { return f.message }

// expansion counts the nodes of a document, and the bytes of their text, with aliases expanded.
type expansion struct {
	limits Limits
	nodes  int
	bytes  int64
	within []*yaml.Node
}

func (f *files) checkExpansion(document *yaml.Node) *finding {
	e := expansion{limits: f.limits}
	found := e.visit(document, 0)
	if f.nodes += e.nodes; f.nodes > f.limits.TotalNodes {
		return &finding{document.Line, f.exceed(settingObjects, "more than %d nodes of YAML are read",
			f.limits.TotalNodes).Error()}
	}
	return found
}

func (e *expansion) visit(n *yaml.Node, depth int) *finding {
	if e.nodes++; e.nodes > e.limits.DocumentNodes {
		return &finding{n.Line, over(settingObjects, "has more than %d nodes once its aliases are expanded",
			e.limits.DocumentNodes)}
	}
	if e.bytes += int64(len(n.Value)); e.bytes > e.limits.FileBytes {
		return &finding{n.Line, over(settingBytes, "is larger than %s once its aliases are expanded",
			mebibytes(e.limits.FileBytes))}
	}
	if depth > e.limits.Nesting {
		return &finding{n.Line, fmt.Sprintf("is nested more than %d deep; use fewer levels", e.limits.Nesting)}
	}
	if slices.Contains(e.within, n) {
		return &finding{n.Line, fmt.Sprintf("the anchor %q contains itself", n.Anchor)}
	}
	e.within = append(e.within, n)
	defer func() { e.within = e.within[:len(e.within)-1] }()
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return e.visit(n.Alias, depth+1)
	}
	for _, child := range n.Content {
		if f := e.visit(child, depth+1); f != nil {
			return f
		}
	}
	return nil
}

// walkNodes visits the nodes of a document without expanding aliases.
func walkNodes(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, child := range n.Content {
		walkNodes(child, visit)
	}
}

func (f *files) checkNode(n *yaml.Node) []finding {
	switch n.Kind {
	case yaml.MappingNode:
		return f.checkKeys(n)
	case yaml.ScalarNode:
		return checkScalar(n)
	default:
		return nil
	}
}

func (f *files) checkKeys(mapping *yaml.Node) (findings []finding) {
	if keys := len(mapping.Content) / 2; keys > f.limits.Keys {
		return []finding{{mapping.Line, over(settingObjects, "has a mapping with more than %d keys", f.limits.Keys)}}
	}
	first := map[string]int{}
	for i := 0; i+1 < len(mapping.Content) && len(findings) <= maxProblems; i += 2 {
		key := mapping.Content[i]
		if key.Kind != yaml.ScalarNode {
			findings = append(findings, finding{key.Line,
				"a key is not a string; if this is a template, render it first: templates are not rendered here"})
			continue
		}
		if tag := key.ShortTag(); tag != "!!str" && tag != "!!merge" {
			findings = append(findings, finding{key.Line,
				fmt.Sprintf("the key %q is not a string; put it in quotes", key.Value)})
			continue
		}
		if line, ok := first[key.Value]; ok {
			findings = append(findings, finding{key.Line,
				fmt.Sprintf("the key %q is duplicated: see also line %d", key.Value, line)})
			continue
		}
		first[key.Value] = key.Line
	}
	return findings
}

func checkScalar(n *yaml.Node) []finding {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!int", "!!bool", "!!null", "!!merge":
		return nil
	case "!!timestamp":
		n.Tag = "!!str"
		return nil
	case "!!float":
		if strings.Contains(strings.ToLower(n.Value), "inf") || strings.EqualFold(n.Value, ".nan") {
			return []finding{{n.Line, fmt.Sprintf("%s is not a number in JSON", n.Value)}}
		}
		return nil
	default:
		return []finding{{n.Line, fmt.Sprintf("the tag %s is not supported", tag)}}
	}
}
