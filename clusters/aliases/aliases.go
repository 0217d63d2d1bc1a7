// Package aliases refuses YAML that is more than it seems to be.
package aliases

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var errAlias = errors.New("it has an alias of YAML, which stands for what is written elsewhere: write it out")

// Refuse refuses a text with an alias, and one that has what could be an alias and cannot be read. What others have
// written could hold some thousand aliases of one long text, each of which is as long once it is decoded.
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
