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

// declaration is an object that is declared as a cluster. Decoding it yields either a cluster or a list of problems.
type declaration struct {
	object
	// name is partly empty if the object does not set both name and namespace.
	name     types.NamespacedName
	told     wireCluster
	problems []Problem
	// room is the maximum number of problems to report.
	room int
}

// declare decodes an object as a cluster. If the object is not a cluster with a name, only problems are returned.
func (f *files) declare(o object) (declarations []*declaration, problems []Problem) {
	if f.objects++; f.objects > f.limits.Objects {
		return nil, []Problem{{File: o.file, Message: f.exceed(settingObjects, "more than %d objects are declared",
			f.limits.Objects).Error()}}
	}
	if f.options.IgnoreOtherKinds && o.isOfOtherKind() {
		return nil, nil
	}
	d := f.options.declare(o, f.room())
	if int64(len(d.told.Applied)+len(d.told.Cluster)) > 2*f.limits.FileBytes && len(d.problems) == 0 {
		d.problem("", "%s", over(settingBytes, "is larger than %s as JSON", mebibytes(f.limits.FileBytes)))
	}
	d.shorten()
	f.told += len(d.problems)
	if d.name.Name == "" {
		return nil, d.problems
	}
	// Without aliases, an object is hardly larger as JSON than as YAML.
	if f.declared += int64(len(d.told.Applied)); f.declared > 2*f.limits.TotalBytes {
		_ = f.exceed(settingBytes, "more than %s are declared", mebibytes(2*f.limits.TotalBytes))
	}
	d.release()
	return []*declaration{d}, nil
}

// room returns how many problems to report for the next object. The number is smaller if many problems have been found
// already, but it is at least one.
func (f *files) room() int { return max(1, min(maxProblems, allProblems-f.told)) }

// release frees the decoded object. Only the line of the name is still needed.
func (d *declaration) release() {
	d.line = d.lineOf("metadata.name")
	d.node, d.value = nil, nil
}

// shorten truncates the problems to d.room and marks the truncation. If d.room is maxProblems, presentable truncates
// them after sorting.
func (d *declaration) shorten() {
	if d.room < maxProblems && len(d.problems) > d.room {
		d.problems = d.problems[:d.room]
		d.problems[d.room-1].Message += andMore
	}
}

// settle checks all declarations together. It returns the clusters without problems, and all problems.
func settle(declarations []*declaration) (clusters []wireCluster, problems []Problem) {
	checkNames(declarations)
	slices.SortStableFunc(declarations, func(a, b *declaration) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
	})
	for _, d := range declarations {
		problems = append(problems, d.problems...)
		if len(d.problems) == 0 {
			clusters = append(clusters, d.told)
		}
	}
	return clusters, problems
}

// declare decodes one object as a cluster and collects its problems, up to room.
func (o Options) declare(from object, room int) *declaration {
	d := &declaration{object: from, room: room}
	switch {
	case len(from.problems) > 0:
		d.nameUndecoded(o.Namespace)
	case wrongKind(from.value) != "":
		d.problem("", "%s", wrongKind(from.value))
		return d
	default:
		d.decode(o)
	}
	if d.name.Name != "" && !o.allows(d.name.Namespace) {
		return d.refuseNamespace(o.AllowNamespaces)
	}
	return d
}

// decode validates an object and converts it to a cluster.
func (d *declaration) decode(o Options) {
	applied, ok := d.checkMetadata(o.Namespace)
	if !ok {
		return
	}
	if isEncrypted(applied) {
		d.problem("sops", "%s", encrypted)
		return
	}
	if _, ok := applied["status"]; ok {
		d.problem("status", "status is written by Quorate; remove it from git")
		delete(applied, "status")
	}
	d.checkFields(applied)
	for _, path := range schema.NullTexts(applied) {
		d.notText(path, "null")
	}
	defaulted := runtime.DeepCopyJSON(applied)
	if err := schema.Default(defaulted); err != nil {
		d.problem("", "%v", err)
		return
	}
	for _, err := range saidOnce(schema.Validate(defaulted, nil)) {
		d.invalid(err)
	}
	d.checkPolicy(o.Policy.Within(o.AllowNamespaces), defaulted)
	if len(d.problems) == 0 {
		d.finish(applied, defaulted)
	}
}

// finish builds the cluster from a valid object.
func (d *declaration) finish(applied, defaulted map[string]any) {
	d.told = wireCluster{File: d.file, Line: d.line, Lines: d.lines()}
	var cluster v1alpha1.EtcdCluster
	var err error
	if d.told.Applied, err = json.Marshal(withoutNulls(applied)); err == nil {
		d.told.Cluster, err = json.Marshal(defaulted)
	}
	if err == nil {
		err = json.Unmarshal(d.told.Cluster, &cluster)
	}
	if err != nil {
		d.problem("", "%v", err)
		return
	}
	if size := cluster.Spec.Storage.Size; size.Value() == math.MaxInt64 {
		d.problem("spec.storage.size", "spec.storage.size: %s reaches or exceeds the maximum", size.String())
		return
	}
	d.told.Warnings = schema.Warnings(cluster.Spec)
}

// problem records a problem with the field at path, unless there are already more problems than will be reported.
func (d *declaration) problem(path, format string, args ...any) {
	if len(d.problems) > d.room {
		return
	}
	p := Problem{File: d.file, Line: d.lineOf(path), Message: fmt.Sprintf(format, args...)}
	if d.name.Name != "" {
		p.Cluster = d.name.String()
	}
	d.problems = append(d.problems, p)
}

// invalid records an API server validation error in readable form. Rules for the whole object do not name a field; the
// only metadata field that they can concern is the name.
func (d *declaration) invalid(err *field.Error) {
	detail := strings.TrimPrefix(err.Detail, err.Field+" in body ")
	if strings.HasPrefix(detail, quantityWanted) {
		detail = "a quantity is a number, usually with a unit such as Mi, Gi or m: 8Gi, not 8GB"
	}
	switch {
	case err.Type == field.ErrorTypeTypeInvalid && strings.HasPrefix(detail, "must be of type string: "):
		d.notText(err.Field, err.BadValue)
	case err.Field != "" && err.Field != "<nil>":
		d.problem(err.Field, "%s", (&field.Error{Type: err.Type, Field: err.Field, BadValue: err.BadValue,
			Detail: detail}).Error())
	case strings.HasPrefix(detail, "metadata.name "):
		d.problem("metadata.name", "%s", detail)
	default:
		d.problem("", "%s", detail)
	}
}

// checkFields reports unknown fields of an EtcdCluster.
func (d *declaration) checkFields(value map[string]any) {
	for _, path := range schema.UnknownFields(value) {
		if len(d.problems) > d.room {
			return
		}
		message := "unknown field"
		if similar := schema.SimilarField(path); similar != "" {
			message += fmt.Sprintf("; did you mean %s?", similar)
		}
		d.problem(path, "%s: %s", path, message)
	}
}

// nameUndecoded sets the problems of an object that could not be decoded. If the object is an EtcdCluster with a name,
// the problems name the cluster.
func (d *declaration) nameUndecoded(namespace string) {
	d.problems = d.object.problems[:min(len(d.object.problems), d.room+1)]
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
