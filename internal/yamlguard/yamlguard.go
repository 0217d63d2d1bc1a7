// Package yamlguard rejects YAML with aliases, which can expand far beyond the size of the text.
package yamlguard

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var errAlias = errors.New("it contains a YAML alias; replace the alias with the content of its anchor")

// Refuse rejects text that contains an alias, and text that may contain an alias but cannot be parsed. Untrusted text
// could contain thousands of aliases for one long text, and decoding would expand each of them to its full length.
func Refuse(text string) error {
	if !strings.Contains(text, "*") {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	if hasAlias(&document) {
		return errAlias
	}
	return nil
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}
