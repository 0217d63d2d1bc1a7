package objects

import (
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
	wanted, err := convert[any](want)
	if err != nil {
		return nil, err
	}
	found, err := convert[any](live)
	if err != nil {
		return nil, err
	}
	var paths []string
	compare("", wanted, found, &paths)
	return paths, nil
}

func compare(path string, want, live any, paths *[]string) {
	wanted, isMap := want.(map[string]any)
	found, isMapToo := live.(map[string]any)
	if !isMap || !isMapToo {
		if !reflect.DeepEqual(want, live) {
			*paths = append(*paths, path)
		}
		return
	}
	names := maps.Clone(wanted)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		compareField(path, name, wanted[name], found[name], paths)
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

func compareField(path, name string, want, live any, paths *[]string) {
	inner := name
	if path != "" {
		inner = path + "." + name
	}
	if name == "volumeClaimTemplates" {
		want, live = declaredClaims(want), declaredClaims(live)
	}
	keys, isMap := listKeys[name]
	wanted, isList := want.([]any)
	found, isListToo := live.([]any)
	if !isMap || !isList || !isListToo {
		compare(inner, want, live, paths)
		return
	}
	byKey, foundByKey := elements(wanted, keys), elements(found, keys)
	all := maps.Clone(byKey)
	maps.Copy(all, foundByKey)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		compare(fmt.Sprintf("%s[%s]", inner, key), byKey[key], foundByKey[key], paths)
	}
}

// declaredClaims leaves out what nobody declares in a template of volume claims. The API server
// fills in kind and status, and client-go reads the kind back from JSON but not from protobuf.
func declaredClaims(list any) any {
	templates, isList := list.([]any)
	if !isList {
		return list
	}
	var declared []any
	for _, template := range templates {
		fields, isMap := template.(map[string]any)
		if !isMap {
			return list
		}
		fields = maps.Clone(fields)
		for _, filledIn := range []string{"apiVersion", "kind", "status"} {
			delete(fields, filledIn)
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
func convert[To any](from any) (To, error) {
	var to To
	text, err := json.Marshal(from)
	if err != nil {
		return to, fmt.Errorf("encode %T: %w", from, err)
	}
	if err := json.Unmarshal(text, &to); err != nil {
		return to, fmt.Errorf("decode %T as %T: %w", from, to, err)
	}
	return to, nil
}
