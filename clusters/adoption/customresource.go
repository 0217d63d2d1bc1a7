package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of custom resource that configures an operator.
type Kind struct {
	// Name is the kind's name, such as EtcdCluster.
	Name string
	// Resource identifies the resource in requests.
	Resource schema.GroupVersionResource
	// Tool is the operator.
	Tool Tool
	// Selector selects the pods of the cluster with the given name. If it is nil, the operator creates a StatefulSet
	// with this name.
	Selector func(name string) string
	// PodController is the kind of object that controls a member's pod, if Selector is set.
	PodController string
	// Fields describes the fields of the custom resource, keyed by path. An entry also covers the fields below its
	// path.
	Fields map[string]Field
	// Options returns the etcd options that the custom resource sets, keyed by their command-line names. It is nil if
	// these options are visible in the pods.
	Options func(object *unstructured.Unstructured) map[string]string
	// Paused reports whether the custom resource pauses the operator, which then leaves the cluster unchanged. It is
	// nil if the custom resource cannot pause the operator. Pause is the instruction for pausing it.
	Paused func(object *unstructured.Unstructured) bool
	Pause  string
}

// APIVersion returns the group and version.
func (k *Kind) APIVersion() string { return k.Resource.GroupVersion().String() }

// Field describes where a field of a custom resource belongs in a declaration.
type Field struct {
	// To is the path in the declaration, or "" if the field is not carried over.
	To string
	// Reason explains why the field is not carried over.
	Reason string
}

// CustomResource is an operator's custom resource.
type CustomResource struct {
	Kind            *Kind
	Namespace, Name string
	UID             types.UID
	// Paused is set if the custom resource pauses the operator, which then leaves the cluster unchanged.
	Paused bool
	// Options are the etcd options that the custom resource sets but that are not visible in the pods.
	Options map[string]string
	// Fields are the paths of the fields that are set, in alphabetical order. Paths that Kind.Fields does not contain
	// are unknown.
	Fields []string
}

// DescribeCustomResource describes a custom resource.
func DescribeCustomResource(kind *Kind, object *unstructured.Unstructured) *CustomResource {
	c := &CustomResource{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Paused: kind.Paused != nil && kind.Paused(object)}
	if kind.Options != nil {
		c.Options = kind.Options(object)
	}
	c.readFields("spec", object.Object["spec"])
	return c
}

// readFields adds the paths of the fields in value that are set.
func (c *CustomResource) readFields(path string, value any) {
	switch value := value.(type) {
	case nil:
		return
	case string:
		if value == "" {
			return
		}
	case []any:
		if len(value) == 0 {
			return
		}
	case map[string]any:
		if len(value) == 0 {
			return
		}
		if c.Kind.hasFieldsIn(path) {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				c.readFields(path+"."+name, value[name])
			}
			return
		}
	}
	c.Fields = append(c.Fields, path)
}

// hasFieldsIn reports whether Fields describes fields below path.
func (k *Kind) hasFieldsIn(path string) bool {
	for known := range k.Fields {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}

// field returns the description of a field, or of the field that contains it.
func (k *Kind) field(path string) (field Field, known bool) {
	for path != "" && !known {
		field, known = k.Fields[path]
		path = path[:max(0, strings.LastIndex(path, "."))]
	}
	return field, known
}

// problems returns the problems, visible in the custom resource, that prevent the adoption or make it unsafe.
func (c *CustomResource) problems() []string {
	if c == nil || c.Kind.Paused == nil || c.Paused {
		return nil
	}
	return []string{fmt.Sprintf("%s %s is not paused. While guests (members of the source) remain, %s must not be "+
		"able to remove replicas or delete their pods, even if it is started by mistake. %s", c.Kind.Name, c.Name,
		c.Kind.Tool.Name, c.Kind.Pause)}
}

// maxFields is the maximum number of fields that are listed.
const maxFields = 100

// fieldLines describes where each field that is set belongs in the declaration, or why it is not carried over.
// declaration may be nil.
func (c *CustomResource) fieldLines(declaration map[string]any) []string {
	var lines []string
	for i, path := range c.Fields {
		if i == maxFields {
			return append(lines, fmt.Sprintf("%d other fields", len(c.Fields)-maxFields))
		}
		field, known := c.Kind.field(path)
		switch {
		case !known:
			lines = append(lines, path+": not carried over; the field is unknown")
		case field.To == "":
			lines = append(lines, path+": not carried over; "+field.Reason)
		case declaration == nil || has(declaration, field.To):
			lines = append(lines, path+": "+field.To)
		default:
			lines = append(lines, path+": not carried over; the members run without it, or "+field.To+
				" does not accept it")
		}
	}
	return lines
}

// has reports whether an object has a field with the given path.
func has(object map[string]any, path string) bool { return valueAt(object, path) != nil }

// valueAt returns the value of the field with the given path, or nil.
func valueAt(object map[string]any, path string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	if err != nil {
		return nil
	}
	return value
}

// Ref refers to the object that manages the members' pods: a StatefulSet if Kind is nil, otherwise a custom resource.
type Ref struct {
	Kind *Kind
	Name string
}

// ParseRef parses a reference: statefulset/NAME or RESOURCE.GROUP/NAME, such as etcd.druid.gardener.cloud/NAME. It
// returns an error if the resource is unknown.
func ParseRef(text string) (Ref, error) {
	resource, name, _ := strings.Cut(text, "/")
	if name != "" && (resource == "statefulset" || resource == "sts") {
		return Ref{Name: name}, nil
	}
	for _, kind := range kinds {
		group := "." + kind.Resource.Group
		named := resource == kind.Resource.Resource+group || resource == strings.ToLower(kind.Name)+group
		if name != "" && named {
			return Ref{Kind: kind, Name: name}, nil
		}
	}
	return Ref{}, fmt.Errorf("%q: expected statefulset/NAME, or RESOURCE.GROUP/NAME, where RESOURCE.GROUP is one of %s"+
		". To copy an etcd cluster that runs differently, see docs/how-to/copy-a-cluster.md", text,
		strings.Join(Resources(), ", "))
}

// Resources returns the names of the known custom resources, such as etcd.druid.gardener.cloud.
func Resources() []string {
	var names []string
	for _, kind := range kinds {
		names = append(names, strings.ToLower(kind.Name)+"."+kind.Resource.Group)
	}
	return names
}

// kindOf returns the kind of an owner, or nil if it is unknown.
func kindOf(owner *metav1.OwnerReference) *Kind {
	if owner == nil {
		return nil
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	for _, kind := range kinds {
		if kind.Resource.Group == group && kind.Name == owner.Kind {
			return kind
		}
	}
	return nil
}
