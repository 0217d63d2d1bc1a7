package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences compares two apply configurations of an object: the desired configuration, and the configuration that
// client-go extracts from the live object for Quorate's field manager. It returns the paths of the fields that differ,
// such as spec.template.spec.containers[etcd].image, or nil if there is no drift. It never returns values, because they
// may be secret.
func Differences(want, live any) ([]string, error) {
	differences, err := differences(want, live, nil)
	var paths []string
	for _, d := range differences {
		paths = append(paths, d.Path)
	}
	return paths, err
}

// Difference is a field of an object whose value will change.
type Difference struct {
	Path string
	// From is the current value, set by any manager, and To is the desired value. Unset values are nil.
	From, To any
}

// Values is like Differences, but also returns the values, for display. It takes the whole live object in addition to
// Quorate's fields, because another manager may now own a field. It omits fields that already have the desired value.
func Values(want, ours, live any) ([]Difference, error) {
	return differences(want, ours, live)
}

// differences compares two apply configurations. If live is the whole live object instead of nil, fields that already
// have the desired value are omitted.
func differences(want, ours, live any) ([]Difference, error) {
	var c comparison
	wantedText, err := toJSON(want)
	if err != nil {
		return nil, err
	}
	foundText, err := toJSON(ours)
	if err != nil || bytes.Equal(wantedText, foundText) { // true for almost all objects
		return nil, err
	}
	wanted, err := fromJSON[any](wantedText, want)
	if err != nil {
		return nil, err
	}
	found, err := fromJSON[any](foundText, ours)
	if err != nil {
		return nil, err
	}
	if c.all = live != nil; c.all {
		if live, err = convert[any](live); err != nil {
			return nil, err
		}
	}
	c.compare("", wanted, found, live)
	return c.found, nil
}

// comparison collects differences.
type comparison struct {
	// all specifies that fields that Quorate does not own are compared with their live values.
	all   bool
	found []Difference
}

func (c *comparison) compare(path string, want, ours, live any) {
	wanted, isMap := want.(map[string]any)
	all, isMapAsWell := live.(map[string]any)
	if isMap && isMapAsWell && ours == nil {
		ours = map[string]any{} // another manager owns the map, so compare its fields
	}
	found, isMapToo := ours.(map[string]any)
	if !isMap || !isMapToo {
		if reflect.DeepEqual(want, ours) || c.all && want != nil && reflect.DeepEqual(want, live) {
			return
		}
		if ours == nil {
			ours = live
		}
		c.found = append(c.found, Difference{path, ours, want})
		return
	}
	names := maps.Clone(wanted)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.compareField(path, name, wanted[name], found[name], all[name])
	}
}

// listKeys maps object fields that are lists in JSON but are treated as maps to the fields that identify their
// elements. The API server may reorder such a list (x-kubernetes-list-map-keys in its OpenAPI document).
var listKeys = map[string][]string{
	"containers":                {"name"},
	"env":                       {"name"},
	"imagePullSecrets":          {"name"},
	"initContainers":            {"name"},
	"ownerReferences":           {"uid"},
	"ports":                     {"name"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"volumeMounts":              {"mountPath"},
	"volumes":                   {"name"},
}

func (c *comparison) compareField(path, name string, want, ours, live any) {
	inner := name
	if path != "" {
		inner = path + "." + name
	}
	if fields := FilledIn[name]; fields != nil {
		want, ours, live = without(fields, want), without(fields, ours), without(fields, live)
	}
	keys, isMap := listKeys[name]
	wanted, isList := want.([]any)
	found, isListToo := ours.([]any)
	others, isListAsWell := live.([]any)
	if !isMap || !isList || !isListToo && (!isListAsWell || ours != nil) {
		c.compare(inner, want, ours, live)
		return
	}
	byKey, foundByKey, liveByKey := elements(wanted, keys), elements(found, keys), elements(others, keys)
	all := maps.Clone(byKey)
	maps.Copy(all, foundByKey)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		c.compare(fmt.Sprintf("%s[%s]", inner, key), byKey[key], foundByKey[key], liveByKey[key])
	}
}

// FilledIn maps lists to those fields of their elements that are never declared or compared. The API server fills in
// the kind and status of a volume claim template, and client-go decodes the kind from JSON but not from protobuf.
var FilledIn = map[string][]string{"volumeClaimTemplates": {"apiVersion", "kind", "status"}}

// without returns a list with the named fields removed from its elements.
func without(names []string, list any) any {
	elements, isList := list.([]any)
	if !isList {
		return list
	}
	var declared []any
	for _, element := range elements {
		fields, isMap := element.(map[string]any)
		if !isMap {
			return list
		}
		fields = maps.Clone(fields)
		for _, name := range names {
			delete(fields, name)
		}
		declared = append(declared, fields)
	}
	return declared
}

func elements(list []any, keys []string) map[string]any {
	byKey := map[string]any{}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		var id []string
		for _, key := range keys {
			id = append(id, fmt.Sprint(fields[key]))
		}
		byKey[strings.Join(id, " ")] = element
	}
	return byKey
}

// convert converts a value to a type with the same JSON encoding, such as v1alpha1.Affinity to the apply configuration
// of core/v1 Affinity.
func convert[To any](from any) (to To, err error) {
	text, err := toJSON(from)
	if err != nil {
		return to, err
	}
	return fromJSON[To](text, from)
}

func toJSON(from any) ([]byte, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", from, err)
	}
	return text, nil
}

// fromJSON decodes the JSON encoding of from.
func fromJSON[To any](text []byte, from any) (to To, err error) {
	if err := json.Unmarshal(text, &to); err != nil {
		return to, fmt.Errorf("decode %T as %T: %w", from, to, err)
	}
	return to, nil
}
