package decide

import (
	"fmt"
	"slices"
	"strings"
)

// RewrittenField is a field that the API server returned with a different value than Quorate applied, because an
// admission policy or webhook has set it.
type RewrittenField struct {
	// Object is the object's kind and name, such as StatefulSet a.
	Object string `json:"object"`
	// Field is the field's path, such as spec.template.spec.containers[etcd].resources.limits.cpu.
	Field string `json:"field"`
	// By is the field manager that owns the field, if it is not Quorate. Changes by admission do not appear in managed
	// fields.
	By string `json:"by,omitempty"`
	// Accepted is true if members work with the returned value, so that it is left unchanged.
	Accepted bool `json:"accepted,omitempty"`
	// Digest is a digest of the applied value and the returned value.
	Digest string `json:"digest"`
}

// String returns the object, the field and its owner.
func (f RewrittenField) String() string {
	if f.By == "" {
		return f.Object + ": " + f.Field
	}
	return fmt.Sprintf("%s: %s (owned by %s)", f.Object, f.Field, f.By)
}

// fieldsRewritten blocks if a template or another object is less secure than what Quorate applied. It does so before
// pods are created from the template, and before clients or members rely on the object.
func fieldsRewritten(s State) (Decision, bool) {
	refused := describeRewritten(s.Objects.Rewritten, false)
	if refused == "" || !s.toRun() {
		return Decision{}, false
	}
	return block("an admission policy or webhook rewrites fields that must keep the applied value: %s. Exempt this "+
		"namespace from it, or declare the value that it sets. Until then, members are not changed or replaced",
		refused)
}

// RewriteWarnings names the fields that are left unchanged although Quorate applies other values.
func (s State) RewriteWarnings() []string {
	accepted := describeRewritten(s.Objects.Rewritten, true)
	if accepted == "" {
		return nil
	}
	return []string{"an admission policy or webhook overrides values that Quorate applies; the fields are left " +
		"unchanged: " + accepted}
}

func describeRewritten(fields []RewrittenField, accepted bool) string {
	var list []string
	for _, f := range fields {
		if f.Accepted == accepted {
			list = append(list, f.String())
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
