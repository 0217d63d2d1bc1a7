package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// It takes seconds to decode a quantity with a large negative exponent, such as 1e-20000000, or to compare a quantity
// with a large positive exponent. Many digits are just as slow.
const longestQuantity = 36

var longExponent = regexp.MustCompile(`[eE].{4}`)

// CheckQuantities returns an error if an object contains quantities that take long to decode. The rules of the CRD
// refuse the same quantities. Call CheckQuantities before decoding an object for which these rules may not have been
// evaluated.
func CheckQuantities(object map[string]any) error {
	var paths []string
	for _, path := range quantities() {
		texts(object, "", path, func(path, text string) {
			if len(text) > longestQuantity || longExponent.MatchString(text) {
				paths = append(paths, path)
			}
		})
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	return fmt.Errorf("%s: a quantity may have at most %d characters and an exponent of at most two digits",
		strings.Join(paths, ", "), longestQuantity)
}

// texts calls visit with each string at a path, in which * matches every key.
func texts(value any, done string, path []string, visit func(path, text string)) {
	if text, is := value.(string); is && len(path) == 0 {
		visit(strings.TrimPrefix(done, "."), text)
	}
	fields, _ := value.(map[string]any)
	if fields == nil || len(path) == 0 {
		return
	}
	if path[0] != "*" {
		texts(fields[path[0]], done+"."+path[0], path[1:], visit)
		return
	}
	for name, field := range fields {
		texts(field, done+"."+name, path[1:], visit)
	}
}

// quantities returns the paths of all quantities in the CRD.
var quantities = sync.OnceValue(func() [][]string {
	c, err := load()
	if err != nil {
		return nil // Validate reports the error
	}
	return quantitiesOf(c.structural, nil)
})

func quantitiesOf(s *structuralschema.Structural, path []string) (paths [][]string) {
	if s.XIntOrString {
		return [][]string{path}
	}
	for name, property := range s.Properties {
		paths = append(paths, quantitiesOf(&property, append(slices.Clip(path), name))...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		paths = append(paths, quantitiesOf(s.AdditionalProperties.Structural, append(slices.Clip(path), "*"))...)
	}
	return paths
}
