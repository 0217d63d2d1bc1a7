package manifests

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineOf returns the line of the field at a path such as spec.tolerations[0].key, or of its nearest existing parent.
func (o object) lineOf(path string) int {
	if o.node == nil {
		return o.line
	}
	_, line := descend(o.node, path, o.line)
	return line
}

// checkedLater lists the fields of spec in which some problems are found only when the objects of a cluster are built.
var checkedLater = []string{"version", "etcd", "backup", "restore", "networkPolicy"}

// mostPaths is the maximum total length, in bytes, of the paths kept for the lines of a cluster.
const mostPaths = 32 << 10

// lines returns the lines of the fields that are checked later, by path. The result is incomplete if there are very
// many fields or if aliases are used.
func (o object) lines() map[string]int {
	lines, room := map[string]int{}, mostPaths
	if o.node == nil {
		return lines
	}
	for _, field := range checkedLater {
		path := "spec." + field
		if value, line := descend(o.node, path, 0); value != nil {
			room = note(lines, room, path, value, line)
		}
	}
	return lines
}

// note records the line of a value and of everything in it, and returns the remaining room.
func note(lines map[string]int, room int, path string, value *yaml.Node, line int) int {
	if room -= len(path); room < 0 {
		return room
	}
	lines[path] = line
	for i, child := range value.Content {
		switch {
		case value.Kind == yaml.SequenceNode:
			room = note(lines, room, fmt.Sprintf("%s[%d]", path, i), child, child.Line)
		case value.Kind == yaml.MappingNode && i%2 == 1:
			key := value.Content[i-1]
			room = note(lines, room, path+"."+key.Value, child, key.Line)
		}
	}
	return room
}

// LineOf returns the line of the field at a path such as spec.backup.recipients[0]. If the line is unknown, it returns
// the line of the nearest known parent or of the object.
func (d Declared) LineOf(path string) int {
	for path != "" {
		if line, known := d.Lines[path]; known {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.Line
}

// writtenAt returns the value at a path as written in the file. It returns "" if the value is not a scalar or does not
// come from a file.
func (o object) writtenAt(path string) string {
	if o.node == nil {
		return ""
	}
	value, _ := descend(o.node, path, o.line)
	if value == nil || value.Kind != yaml.ScalarNode {
		return ""
	}
	return value.Value
}

// descend returns the value at path below n, or nil if it does not exist, and the line of the nearest field.
func descend(n *yaml.Node, path string, line int) (*yaml.Node, int) {
	path = strings.TrimPrefix(path, ".")
	switch {
	case path == "":
		return n, line
	case n.Kind == yaml.AliasNode:
		return descend(n.Alias, path, line)
	case n.Kind == yaml.MappingNode:
		return descendMapping(n, path, line)
	case n.Kind == yaml.SequenceNode:
		index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, ok := indexIn(index, len(n.Content)); ok {
			return descend(n.Content[i], rest, n.Content[i].Line)
		}
	}
	return nil, line
}

// descendMapping follows the longest key that path starts with, because keys may contain dots.
func descendMapping(n *yaml.Node, path string, line int) (*yaml.Node, int) {
	best, rest := -1, ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		after, ok := cutKey(path, n.Content[i].Value)
		if ok && (best < 0 || len(after) < len(rest)) {
			best, rest = i, after
		}
	}
	if best < 0 {
		return nil, line
	}
	return descend(n.Content[best+1], rest, n.Content[best].Line)
}

// cutKey removes the key, written as key or as [key], from the start of path.
func cutKey(path, key string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok = strings.CutPrefix(path, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func indexIn(digits string, length int) (int, bool) {
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0 && i < length
}

// textAt returns the text at a path of keys, or "".
func textAt(n *yaml.Node, path ...string) string {
	for _, key := range path {
		if n = valueOf(n, key); n == nil {
			return ""
		}
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return ""
	}
	return n.Value
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
