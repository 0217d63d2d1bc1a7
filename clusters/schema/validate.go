package schema

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1validation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Validate returns all errors that the API server would report for object, by field: as an update of old or, if old is
// nil, as a new object. Defaults must have been set (see Default). Unknown fields are not errors here (see
// UnknownFields). Metadata that the API server itself sets is not required, so that a declaration can be compared with
// a live object. The error that some rules were not checked because of other errors is omitted, because the other
// errors are more specific.
func Validate(object, old map[string]any) field.ErrorList {
	c, err := load()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var errs field.ErrorList
	if old == nil {
		errs = c.validateNew(object)
	} else {
		errs = append(validateMetadata(object), c.validateUpdate(object, old)...)
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Error(), b.Error()))
	})
	return errs
}

func (c *compiled) validateNew(object map[string]any) field.ErrorList {
	errs := validateMetadata(object)
	errs = append(errs, validation.ValidateCustomResource(nil, object, c.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	return append(errs, c.askRules(errs, object, nil)...)
}

// validateUpdate works like the API server: existing errors in unchanged fields are accepted ("ratcheting"), so that a
// new rule does not prevent changes to an existing object.
func (c *compiled) validateUpdate(object, old map[string]any) field.ErrorList {
	both := common.NewCorrelatedObject(object, old, &model.Structural{Structural: c.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, c.openAPI, validation.WithRatcheting(both))
	if len(listtype.ValidateListSetsAndMaps(nil, c.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	}
	return append(errs, c.askRules(errs, object, old, cel.WithRatcheting(both))...)
}

// askRules evaluates the CEL rules, unless the object already has the wrong structure, because the rules depend on the
// structure.
func (c *compiled) askRules(errs field.ErrorList, object, old map[string]any, opts ...cel.Option) field.ErrorList {
	if slices.ContainsFunc(errs, blocksRules) {
		return nil
	}
	var oldSelf any
	if old != nil {
		oldSelf = old
	}
	var violations field.ErrorList
	c.withRules(func(rules *cel.Validator) {
		violations, _ = rules.Validate(context.Background(), nil, c.structural, object, oldSelf,
			celconfig.RuntimeCELCostBudget, opts...)
	})
	return violations
}

func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

func validateMetadata(object map[string]any) field.ErrorList {
	path := field.NewPath("metadata")
	metadata, found, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return field.ErrorList{field.Invalid(path, object["metadata"], err.Error())}
	}
	if !found {
		metadata = &metav1.ObjectMeta{}
	}
	return metav1validation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, metadata, nil, true,
		metav1validation.NameIsDNSSubdomain, path, true)
}
