package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// saidOnce drops the error that a value has the wrong type if another error lists the supported values. Correcting the
// type would not be enough: for example, quoting true would not make it a supported value.
func saidOnce(list field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(list), func(err *field.Error) bool {
		return err.Type == field.ErrorTypeTypeInvalid && slices.ContainsFunc(list, func(other *field.Error) bool {
			return other.Type == field.ErrorTypeNotSupported && other.Field == err.Field
		})
	})
}

// quantityWanted is the beginning of the schema's error for an invalid quantity. The rest is an unreadable regular
// expression.
const quantityWanted = `should match '^(\+|-)?(([0-9]+`

// kindOfJSON returns the schema's name for the type of a value.
func kindOfJSON(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	default:
		return "number"
	}
}

// notText reports that the value of a field is not text, and how to write it as text. YAML reads 3.7 as a number and
// true as a boolean.
func (d *declaration) notText(path string, kind any) {
	said := map[any]string{"integer": "a number", "number": "a number", "boolean": "a boolean", "object": "a mapping",
		"array": "a list", "null": "null"}[kind]
	message := strings.TrimSpace(fmt.Sprintf("%s is %s, but must be a string", d.writtenAt(path),
		cmp.Or(said, "something else")))
	switch {
	case kind == "object" || kind == "array":
	case path == "spec.version":
		message += `: quote it, and write MAJOR.MINOR.PATCH, such as "3.6.5"`
	default:
		message += ": quote it"
	}
	d.problem(path, "%s: %s", path, message)
}
