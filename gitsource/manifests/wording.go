package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// saidOnce leaves out that a value is of the wrong type where it is also said which values there
// are: to quote true would not make it one of them.
func saidOnce(list field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(list), func(err *field.Error) bool {
		return err.Type == field.ErrorTypeTypeInvalid && slices.ContainsFunc(list, func(other *field.Error) bool {
			return other.Type == field.ErrorTypeNotSupported && other.Field == err.Field
		})
	})
}

// quantityWanted is how the schema begins to say that a value is no quantity: with an expression that
// nobody can read.
const quantityWanted = `should match '^(\+|-)?(([0-9]+`

// notText says of a value that must be text what it is, and how it becomes text. YAML takes 3.7 for
// a number and true for a boolean.
func (d *declaration) notText(err *field.Error) string {
	kind := map[any]string{"integer": "a number", "number": "a number", "boolean": "a boolean", "object": "a mapping",
		"array": "a list"}[err.BadValue]
	scalar := err.BadValue != "object" && err.BadValue != "array"
	said := strings.TrimSpace(fmt.Sprintf("%s is %s and must be text", d.writtenAt(err.Field),
		cmp.Or(kind, "something else")))
	switch {
	case scalar && err.Field == "spec.version":
		return said + `: quote it, and write MAJOR.MINOR.PATCH, such as "3.6.5"`
	case scalar:
		return said + ": quote it"
	}
	return said
}
