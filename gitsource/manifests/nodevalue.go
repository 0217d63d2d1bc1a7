package manifests

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// valueOfNode returns the Go value of a node. The caller must have checked the structure of the node. The library's
// decoder is not used, because it would compare each key of a mapping with all others.
func valueOfNode(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return valueOfNode(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = valueOfNode(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return mapOfNode(n)
	default:
		var value any
		err := n.Decode(&value)
		return value, err
	}
}

func mapOfNode(n *yaml.Node) (map[string]any, error) {
	value := make(map[string]any, len(n.Content)/2)
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merged = n.Content[i+1]
			continue
		}
		var err error
		if value[n.Content[i].Value], err = valueOfNode(n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	if merged == nil {
		return value, nil
	}
	return value, mergeInto(value, merged)
}

var errMerge = errors.New("<< can merge only a mapping or a sequence of mappings")

// mergeInto adds the fields named by << to value, keeping existing fields.
func mergeInto(value map[string]any, merged *yaml.Node) error {
	if merged.Kind == yaml.AliasNode {
		merged = merged.Alias
	}
	switch merged.Kind {
	case yaml.MappingNode:
		more, err := mapOfNode(merged)
		if err != nil {
			return err
		}
		for key, v := range more {
			if _, ok := value[key]; !ok {
				value[key] = v
			}
		}
		return nil
	case yaml.SequenceNode:
		for _, item := range merged.Content {
			if item.Kind == yaml.SequenceNode || item.Kind == yaml.AliasNode && item.Alias.Kind != yaml.MappingNode {
				return errMerge
			}
			if err := mergeInto(value, item); err != nil {
				return err
			}
		}
		return nil
	default:
		return errMerge
	}
}
