package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// declaration is an object that says to be a cluster, on its way to be one or to be a
// list of problems.
type declaration struct {
	object
	// name is empty in part where the object does not say.
	name     types.NamespacedName
	cluster  Declared
	problems []Problem
}

// declare decodes objects as clusters. What is no cluster with a name is only in the problems.
func (f *files) declare(objects []object) (declarations []*declaration, problems []Problem) {
	if f.objects += len(objects); f.objects > f.limits.Objects {
		return nil, []Problem{{File: objects[0].file, Message: f.exceed("max-objects", "more than %d objects are declared", f.limits.Objects).Error()}}
	}
	for _, o := range objects {
		if f.ctx.Err() != nil {
			return nil, nil
		}
		if f.options.IgnoreOtherKinds && o.isOfOtherKind() {
			continue
		}
		d := f.options.declare(o)
		if d.name.Name == "" {
			problems = append(problems, d.problems...)
			continue
		}
		d.release()
		declarations = append(declarations, d)
	}
	return declarations, problems
}

// release lets go of what was read: all that is still asked for is the line of the name.
func (d *declaration) release() {
	d.line = d.lineOf("metadata.name")
	d.node, d.value = nil, nil
}

// settle looks at all declarations together. A cluster with a problem is only in the problems.
func settle(declarations []*declaration) (clusters []Declared, problems []Problem) {
	checkNames(declarations)
	for _, d := range declarations {
		problems = append(problems, d.problems...)
		if len(d.problems) == 0 {
			clusters = append(clusters, d.cluster)
		}
	}
	slices.SortFunc(clusters, func(a, b Declared) int {
		return strings.Compare(a.key(), b.key())
	})
	return clusters, problems
}

// key orders by namespace, then name: no name holds a NUL.
func (d Declared) key() string { return d.Cluster.Namespace + "\x00" + d.Cluster.Name }

// declare decodes one object as a cluster, gathering all that is wrong with it.
func (o Options) declare(from object) *declaration {
	d := &declaration{object: from}
	switch {
	case len(from.problems) > 0:
		d.nameUndecoded(o.Namespace)
	case wrongKind(from.value) != "":
		d.problem("", "%s", wrongKind(from.value))
		return d
	default:
		d.decode(o.Namespace)
	}
	if d.name.Name != "" && !o.allows(d.name.Namespace) {
		return d.refuseNamespace(o.AllowNamespaces)
	}
	return d
}

// decode makes a cluster of an object.
func (d *declaration) decode(namespace string) {
	applied, ok := d.checkMetadata(namespace)
	if !ok {
		return
	}
	if isEncrypted(applied) {
		d.problem("sops", "%s", encrypted)
		return
	}
	if _, ok := applied["status"]; ok {
		d.problem("status", "status is what a pass reports; it has no place in git")
		delete(applied, "status")
	}
	d.checkFields(applied)
	defaulted := runtime.DeepCopyJSON(applied)
	if err := schema.Default(defaulted); err != nil {
		d.problem("", "%v", err)
		return
	}
	for _, err := range schema.Validate(defaulted, nil) {
		d.invalid(err)
	}
	if len(d.problems) == 0 {
		d.finish(applied, defaulted)
	}
}

// finish makes the cluster of an object that is valid.
func (d *declaration) finish(applied, defaulted map[string]any) {
	d.cluster = Declared{Applied: withoutNulls(applied), File: d.file, Line: d.line}
	encoded, err := json.Marshal(defaulted)
	if err == nil {
		err = json.Unmarshal(encoded, &d.cluster.Cluster)
	}
	if err != nil {
		d.problem("", "%v", err)
		return
	}
	if size := d.cluster.Cluster.Spec.Storage.Size; size.Value() == math.MaxInt64 {
		d.problem("spec.storage.size", "spec.storage.size: %s is the most that there is, or more", size.String())
		return
	}
	d.cluster.Warnings = schema.Warnings(d.cluster.Cluster.Spec)
}

// problem notes what is wrong with the field at path, unless more is known already than is told.
func (d *declaration) problem(path, format string, args ...any) {
	if len(d.problems) > maxProblems {
		return
	}
	p := Problem{File: d.file, Line: d.lineOf(path), Message: fmt.Sprintf(format, args...)}
	if d.name.Name != "" {
		p.Cluster = d.name.String()
	}
	d.problems = append(d.problems, p)
}

// invalid words an error of the API server's validation. Its rules on the whole object have
// no field, and can be about no field of metadata but the name.
func (d *declaration) invalid(err *field.Error) {
	detail := strings.TrimPrefix(err.Detail, err.Field+" in body ")
	switch {
	case err.Field != "" && err.Field != "<nil>":
		d.problem(err.Field, "%s", (&field.Error{Type: err.Type, Field: err.Field, BadValue: err.BadValue, Detail: detail}).Error())
	case strings.HasPrefix(detail, "metadata.name "):
		d.problem("metadata.name", "%s", detail)
	default:
		d.problem("", "%s", detail)
	}
}

// checkFields finds the fields that an EtcdCluster does not have.
func (d *declaration) checkFields(value map[string]any) {
	for _, path := range schema.UnknownFields(value) {
		if len(d.problems) > maxProblems {
			return
		}
		message := "unknown field"
		if similar := schema.SimilarField(path); similar != "" {
			message += fmt.Sprintf("; did you mean %s?", similar)
		}
		d.problem(path, "%s: %s", path, message)
	}
}

// nameUndecoded takes over the problems of an object that could not be decoded. If it tells its name, it is known which cluster is broken.
func (d *declaration) nameUndecoded(namespace string) {
	d.problems = d.object.problems
	if d.node == nil || textAt(d.node, "kind") != v1alpha1.Kind || textAt(d.node, "metadata", "name") == "" {
		return
	}
	d.name = types.NamespacedName{
		Namespace: cmp.Or(textAt(d.node, "metadata", "namespace"), namespace),
		Name:      textAt(d.node, "metadata", "name"),
	}
	for i := range d.problems {
		d.problems[i].Cluster = d.name.String()
	}
}
