// Package schema evaluates the generated CustomResourceDefinition of EtcdCluster as the API server would: it determines
// the defaults of an object, its unknown fields, and its errors. It works offline and does not define any rules itself.
// The rules are markers on the types of v1alpha1, from which the definition is generated.
package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// compiled is the compiled definition.
type compiled struct {
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
}

// load compiles the definition once. An error is a bug in the program, because a test applies the API server's own
// validation to the definition.
var load = sync.OnceValues(func() (*compiled, error) {
	c, err := compile(crd.YAML)
	if err != nil {
		return nil, fmt.Errorf("compile the definition of %s: %w", v1alpha1.Kind, err)
	}
	return c, nil
})

func compile(definition []byte) (*compiled, error) {
	openAPI, err := openAPISchema(definition)
	if err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(openAPI)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(openAPI)
	if err != nil {
		return nil, err
	}
	return &compiled{structural: structural, openAPI: validator}, nil
}

// idleRules are the compiled CEL rules that are not in use. They are kept for the next object, because compiling them
// takes longer than processing a cluster. However, they use as much memory as two hundred clusters, so the garbage
// collector may free them while they are idle.
var idleRules sync.Pool

// withRules calls evaluate with the compiled CEL rules.
func (c *compiled) withRules(evaluate func(*cel.Validator)) {
	rules, is := idleRules.Get().(*cel.Validator)
	if !is {
		rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	}
	evaluate(rules)
	idleRules.Put(rules)
}

// openAPISchema returns the schema of the served version, in the API server's internal form.
func openAPISchema(definition []byte) (*apiextensions.JSONSchemaProps, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &d); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == v1alpha1.GroupVersion.Version
	})
	if i < 0 {
		return nil, fmt.Errorf("it has no version %s", v1alpha1.GroupVersion.Version)
	}
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		d.Spec.Versions[i].Schema.OpenAPIV3Schema, &internal, nil)
	return &internal, err
}

// Default sets, in place, the defaults of fields that object omits. The object is an EtcdCluster decoded from JSON,
// with int64 or float64 for numbers.
func Default(object map[string]any) error {
	c, err := load()
	if err != nil {
		return err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	defaulting.Default(object, c.structural)
	return nil
}

// UnknownFields returns the sorted paths of the fields of object that do not exist in EtcdCluster. Validate reports
// fields that cannot be decoded at all.
func UnknownFields(object map[string]any) []string {
	c, err := load()
	if err != nil {
		return nil
	}
	_, _, unknown, _ := objectmeta.GetObjectMetaWithOptions(object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	pruned := runtime.DeepCopyJSON(object)
	track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(pruned, c.structural, true, track)...)
	slices.Sort(unknown)
	return unknown
}

// NullTexts returns the sorted paths of the null entries in maps of strings. The API server drops such entries
// silently.
func NullTexts(object map[string]any) []string {
	c, err := load()
	if err != nil {
		return nil // Default returns the error
	}
	paths := nullTexts(nil, "", object, c.structural)
	slices.Sort(paths)
	return paths
}

func nullTexts(paths []string, path string, value any, s *structuralschema.Structural) []string {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if s.Items != nil {
				paths = nullTexts(paths, fmt.Sprintf("%s[%d]", path, i), item, s.Items)
			}
		}
	case map[string]any:
		for key, entry := range value {
			below, known := s.Properties[key]
			of := strings.TrimPrefix(path+"."+key, ".")
			switch {
			case known:
				paths = nullTexts(paths, of, entry, &below)
			case s.AdditionalProperties == nil:
			case entry == nil && s.AdditionalProperties.Structural.Type == "string":
				paths = append(paths, of)
			default:
				paths = nullTexts(paths, of, entry, s.AdditionalProperties.Structural)
			}
		}
	}
	return paths
}

// DropEmptyMaps removes, in place, maps without entries from an object. An empty map has the same meaning as a missing
// map, but if an owner has removed its last entry, the API server turns the empty map into null and rejects it.
func DropEmptyMaps(object map[string]any) {
	if c, err := load(); err == nil { // Default returns the error
		dropEmptyMaps(object, c.structural)
	}
}

func dropEmptyMaps(object map[string]any, s *structuralschema.Structural) {
	for key, value := range object {
		inner, isMap := value.(map[string]any)
		property, known := s.Properties[key]
		switch {
		case !isMap || !known:
		case property.AdditionalProperties == nil:
			dropEmptyMaps(inner, &property)
		case len(inner) == 0:
			delete(object, key)
		}
	}
}
