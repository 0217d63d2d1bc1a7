package manifests

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// notText says of a value that must be text what it is, and how it becomes text. YAML takes 3.7 for
// a number and true for a boolean.
func (d *declaration) notText(err *field.Error) string {
	kind := map[any]string{"integer": "a number", "number": "a number", "boolean": "a boolean", "object": "a mapping", "array": "a list"}[err.BadValue]
	scalar := err.BadValue != "object" && err.BadValue != "array"
	said := strings.TrimSpace(fmt.Sprintf("%s is %s and must be text", d.writtenAt(err.Field), cmp.Or(kind, "something else")))
	switch {
	case scalar && err.Field == "spec.version":
		return said + `: quote it, and write MAJOR.MINOR.PATCH, such as "3.6.5"`
	case scalar:
		return said + ": quote it"
	}
	return said
}
