package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// TestEarlierObjectsRemainValid checks that the current definition accepts everything that an earlier definition
// accepted and stored, with the same meaning, and that the definition can be upgraded in place.
func TestEarlierObjectsRemainValid(t *testing.T) {
	text, err := os.ReadFile("../v1alpha1/crd/testdata/earlier.yaml")
	if err != nil {
		t.Fatal(err)
	}
	earlier, today := definition(t, text), definition(t, crd.YAML)
	if len(earlier.Spec.Versions) != 1 || len(today.Spec.Versions) != 1 {
		t.Fatal("more than one version exists: which of them were stored?")
	}
	for _, what := range narrowed(schemaOf(earlier), schemaOf(today), "") {
		t.Error(what)
	}
	earlier.Spec.Versions[0].Schema, today.Spec.Versions[0].Schema = nil, nil
	earlier.Spec.Versions[0].AdditionalPrinterColumns, today.Spec.Versions[0].AdditionalPrinterColumns = nil, nil
	if !reflect.DeepEqual(earlier.Spec, today.Spec) {
		t.Errorf("apart from the schema, the definition was\n%+v\nand is\n%+v", earlier.Spec, today.Spec)
	}
}

// TestNarrowed checks that changes that narrow a schema are found, and that changes that widen it are not reported.
func TestNarrowed(t *testing.T) {
	const before = "{type: object, required: [a], properties: {a: {type: string, maxLength: 5, enum: [x, y]}, " +
		"b: {type: array, maxItems: 3, items: {type: integer, maximum: 9, default: 1}}}}"
	for change, found := range map[string]int{
		"required: [a]=>required: []":                                        0,
		"maxLength: 5=>maxLength: 6":                                         0,
		"enum: [x, y]=>enum: [x, z, y]":                                      0,
		"properties: {a=>properties: {c: {type: string}, a":                  0,
		"type: string=>type: string, description: new":                       0,
		"maxLength: 5=>maxLength: 4":                                         1,
		"maxLength: 5, =>":                                                   1, // may be narrower: needs review
		"enum: [x, y]=>enum: [x]":                                            1,
		"maximum: 9=>maximum: 8":                                             1,
		"default: 1=>default: 2":                                             1,
		"type: integer=>type: string":                                        1,
		"required: [a]=>required: [a, b]":                                    1,
		"maxItems: 3=>maxItems: 3, minItems: 1":                              1,
		"b: {=>c: {":                                                         1,
		"required: [a]=>required: [a, c]":                                    1,
		"maxItems: 3=>maxItems: 3, x-kubernetes-validations: [{rule: self}]": 1,
		"maximum: 9=>maximum: 9, x-kubernetes-int-or-string: true":           1,
	} {
		from, to, _ := strings.Cut(change, "=>")
		var earlier, today apiextensionsv1.JSONSchemaProps
		for into, text := range map[*apiextensionsv1.JSONSchemaProps]string{
			&earlier: before, &today: strings.Replace(before, from, to, 1),
		} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		if got := narrowed(&earlier, &today, ""); len(got) != found {
			t.Errorf("%s: %q", change, got)
		}
	}
}

// newRules are added rules that do not restrict any values that existed before.
var newRules = map[string][]string{
	"": {"!has(self.spec.backup) || self.metadata.name.size() <= 45"},
	".spec": {
		"!has(self.adopt) || has(self.adopt.caSecretName) == (self.tls.mode == 'Managed')",
		"!has(self.adopt) || !has(self.restore) && !has(self.recovery) && !has(self.networkPolicy)",
	},
	".spec.storage.size":           {quick},
	".spec.etcd.quota":             {quick},
	".spec.etcd.maxRequestBytes":   {quick},
	".spec.pod.resources.limits":   {quickEntries},
	".spec.pod.resources.requests": {quickEntries},
}

// These rules refuse only quantities that no cluster can have and that take seconds to compare. Other rules skip these
// quantities.
const (
	quick        = "string(self).size() <= 36 && !string(self).matches('[eE].{4}')"
	quickEntries = "self.all(k, string(self[k]).size() <= 36 && !string(self[k]).matches('[eE].{4}'))"
)

var leftOut = regexp.MustCompile(`string\([^()]+\)\.size\(\) > 36 \|\| string\([^()]+\)\.matches\('\[eE\]\.\{4\}'\) \|\| `)

// newlySaid maps rewritten rules to an equivalent earlier form.
var newlySaid = map[string]string{
	"self.all(k, !string(self[k]).matches('^-[0.]*[1-9]'))": "self.all(k, !isQuantity(string(self[k])) || quantity(string(self[k])).compareTo(quantity('0')) >= 0)",
	requestsWithinLimits("'cpu'"):                           requestsOfAll, requestsWithinLimits("'memory'"): requestsOfAll, requestsWithinLimits("'ephemeral-storage'"): requestsOfAll,
}

var requestsOfAll = strings.Replace(requestsWithinLimits("k"), "!(k in self.requests)", "['cpu', 'memory', 'ephemeral-storage'].all(k, !(k in self.requests)", 1) + ")"

func requestsWithinLimits(name string) string {
	return strings.ReplaceAll("!has(self.requests) || !has(self.limits) || !(k in self.requests) || !(k in self.limits) || "+
		"!isQuantity(string(self.requests[k])) || !isQuantity(string(self.limits[k])) || "+
		"quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0", "k", name)
}

// narrowed describes how a schema accepts less, or may accept less, than an earlier schema. It includes all changes
// that are not known to widen the schema.
func narrowed(earlier, today *apiextensionsv1.JSONSchemaProps, path string) (all []string) {
	was, is := *earlier.DeepCopy(), *today.DeepCopy()
	say := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		there, known := is.Properties[name]
		if !known {
			say("%s is no longer known", name)
			continue
		}
		before := was.Properties[name]
		all = append(all, narrowed(&before, &there, path+"."+name)...)
	}
	if was.Items != nil && is.Items != nil && was.Items.Schema != nil && is.Items.Schema != nil {
		all = append(all, narrowed(was.Items.Schema, is.Items.Schema, path+"[]")...)
		was.Items, is.Items = nil, nil
	}
	if b, n := was.AdditionalProperties, is.AdditionalProperties; b != nil && n != nil && b.Schema != nil && n.Schema != nil {
		all = append(all, narrowed(b.Schema, n.Schema, path+"{}")...)
		was.AdditionalProperties, is.AdditionalProperties = nil, nil
	}
	is.Required = slices.DeleteFunc(is.Required, func(name string) bool { return slices.Contains(was.Required, name) })
	is.Enum = slices.DeleteFunc(is.Enum, func(v apiextensionsv1.JSON) bool {
		return len(was.Enum) > 0 && !slices.ContainsFunc(was.Enum, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(v.Raw) })
	})
	is.XValidations = slices.DeleteFunc(is.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return slices.Contains(newRules[path], rule.Rule)
	})
	for i := range is.XValidations {
		rule := &is.XValidations[i].Rule
		if *rule = leftOut.ReplaceAllString(*rule, ""); newlySaid[*rule] != "" {
			*rule = newlySaid[*rule]
		}
	}
	grown(&was.MaxLength, &is.MaxLength)
	grown(&was.MaxItems, &is.MaxItems)
	grown(&was.MaxProperties, &is.MaxProperties)
	grown(&was.Maximum, &is.Maximum)
	for _, s := range []*apiextensionsv1.JSONSchemaProps{&was, &is} {
		s.Description, s.Properties = "", nil
		for i := range s.XValidations {
			s.XValidations[i].Message = ""
		}
	}
	if was.Required = nil; len(is.Required) == 0 {
		is.Required = nil
	}
	if is.XValidations = slices.CompactFunc(is.XValidations, func(a, b apiextensionsv1.ValidationRule) bool { return a.Rule == b.Rule }); len(is.XValidations) == 0 {
		is.XValidations = nil
	}
	if !reflect.DeepEqual(was, is) {
		say("was %s and is %s", inJSON(was), inJSON(is))
	}
	return all
}

// grown removes both bounds if the current bound is not lower than the earlier one.
func grown[T int64 | float64](was, is **T) {
	if *was != nil && *is != nil && **is >= **was {
		*was, *is = nil, nil
	}
}

func inJSON(s apiextensionsv1.JSONSchemaProps) string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func definition(t *testing.T, text []byte) (d apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func schemaOf(d apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema
}
