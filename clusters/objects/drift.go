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

// Differences compares two apply configurations of one object: the one to apply, and the one that
// client-go extracts from the live object for our field manager. It returns the paths at which they
// differ, such as spec.template.spec.containers[etcd].image; none if there is no drift. It never
// returns values, which may be secret.
func Differences(want, live any) ([]string, error) {
	differences, err := differences(want, live, nil)
	var paths []string
	for _, d := range differences {
		paths = append(paths, d.Path)
	}
	return paths, err
}

// Difference is a field of an object that is to get another value.
type Difference struct {
	Path string
	// From is the value that it has, whoever set it, and To that which it is to have; nil for none.
	From, To any
}

// Values compares as Differences does, and returns the values as well, for people. Beside what
// is ours of the live object, it takes all of it: a field that is to be ours may be somebody else's now.
// One that has the right value already is left out.
func Values(want, ours, live any) ([]Difference, error) {
	return differences(want, ours, live)
}

// differences leaves out what is right already only if all of the live object is given.
func differences(want, ours, live any) ([]Difference, error) {
	var c comparison
	wantedText, err := toJSON(want)
	if err != nil {
		return nil, err
	}
	foundText, err := toJSON(ours)
	if err != nil || bytes.Equal(wantedText, foundText) { // as nearly all are
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

// comparison finds differences.
type comparison struct {
	// all: what is live is compared where it is not ours.
	all   bool
	found []Difference
}

func (c *comparison) compare(path string, want, ours, live any) {
	wanted, isMap := want.(map[string]any)
	all, isMapAsWell := live.(map[string]any)
	if isMap && isMapAsWell && ours == nil {
		ours = map[string]any{} // somebody else has set it: what differs is within it
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

// listKeys are the fields of the objects that are lists in form and maps in meaning, with the
// fields that tell their elements apart. The API server may return such a list in another order
// (x-kubernetes-list-map-keys in its OpenAPI document).
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

// FilledIn are names of lists, with the fields of their elements that nobody declares and that are not compared. The
// API server fills in kind and status of a template of volume claims, and client-go reads the kind back from JSON but
// not from protobuf.
var FilledIn = map[string][]string{"volumeClaimTemplates": {"apiVersion", "kind", "status"}}

// without leaves fields of its elements out of a list.
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

// convert turns a value into one of another type with the same JSON, such as v1alpha1.Affinity into
// the apply configuration of core/v1 Affinity.
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

// fromJSON reads what a value was encoded as.
func fromJSON[To any](text []byte, from any) (to To, err error) {
	if err := json.Unmarshal(text, &to); err != nil {
		return to, fmt.Errorf("decode %T as %T: %w", from, to, err)
	}
	return to, nil
}
