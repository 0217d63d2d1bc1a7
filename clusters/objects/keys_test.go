package objects

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// etcdKeys is the path of a table of the keys that etcd's configuration file accepts. The keys are the JSON tags of
// embed.Config and its nested structs, with their types and their first and last versions. etcd silently ignores all
// other keys.
const etcdKeys = "../../testdata/objects/etcd-keys.txt"

type etcdKey struct {
	structName, key, goType string
	first, last             etcdversion.Version
}

func (k etcdKey) String() string {
	return fmt.Sprintf("%s %s %s %s %s", k.structName, k.key, k.goType, k.first, k.last)
}

// TestEtcdKeys compares the table with the etcd sources in the module cache. With -rewrite, it regenerates the table
// from these sources if all relevant releases exist.
func TestEtcdKeys(t *testing.T) {
	sources := etcdSources(t)
	if *rewrite {
		for _, v := range releasesAround(readKeys(t)) {
			if sources[v] == "" {
				t.Skipf("the table is kept unchanged: to regenerate it, go mod download go.etcd.io/etcd/server/v3@v%s, and the other releases in which it changes", v)
			}
		}
		writeKeys(t, sources)
		return
	}
	table := readKeys(t)
	for v, source := range sources {
		found := map[string]bool{}
		for _, k := range configKeys(t, v, source) {
			found[k.structName+" "+k.key+" "+k.goType] = true
		}
		for _, k := range table {
			inRange := v.AtLeast(k.first) && k.last.AtLeast(v)
			if name := k.structName + " " + k.key + " " + k.goType; inRange != found[name] {
				t.Errorf("etcd %s: %s exists: %t, in the table: %t", v, name, found[name], inRange)
			}
		}
	}
}

// TestWrittenKeysAreReadByEtcd writes every option for every version at which the set of keys changes. It checks that
// the version knows every key in the file, and that each value has the type of its key.
func TestWrittenKeysAreReadByEtcd(t *testing.T) {
	table := readKeys(t)
	for _, v := range releasesAround(table) {
		t.Run(v.String(), func(t *testing.T) {
			c := threeMembers(t, v.String())
			c.Spec.Etcd.AutoCompaction = &v1alpha1.AutoCompaction{Mode: v1alpha1.CompactionPeriodic, Retention: "1h"}
			snapshotCount := int64(5000)
			c.Spec.Etcd.SnapshotCount = &snapshotCount
			c.Spec.Etcd.Options = optionsOf(v)
			if problems := CheckOptions(c.Spec); len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, mode := range []decide.Mode{decide.Founding, decide.Sealed} {
				in := Input{Cluster: c, Record: record(1, mode)}
				checkKeys(t, table, v, fileOf(t, in, 0))
			}
		})
	}
}

// optionsOf returns example values for all options of a version.
func optionsOf(v etcdversion.Version) map[string]v1alpha1.OptionValue {
	set := map[string]v1alpha1.OptionValue{}
	for name, o := range options {
		if v.AtLeast(o.since) {
			set[name] = v1alpha1.OptionValue(o.example())
		}
	}
	return set
}

func (o option) example() string {
	if o.kind == word {
		return o.words[0]
	}
	return map[valueKind]string{number: "10000", duration: "7s", boolean: "true"}[o.kind]
}

func checkKeys(t *testing.T, table []etcdKey, v etcdversion.Version, text string) {
	var file map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for key, value := range file {
		if inner, isMap := value.(map[string]any); isMap {
			for key, value := range inner {
				checkKey(t, table, v, []string{"securityConfig"}, key, value)
			}
			continue
		}
		checkKey(t, table, v, []string{"Config", "configJSON"}, key, value)
	}
}

func checkKey(t *testing.T, table []etcdKey, v etcdversion.Version, structs []string, key string, value any) {
	for _, k := range table {
		if k.key == key && slices.Contains(structs, k.structName) && v.AtLeast(k.first) && k.last.AtLeast(v) {
			if !fits(k.goType, value) {
				t.Errorf("%s: %v does not fit into a %s", key, value, k.goType)
			}
			return
		}
	}
	t.Errorf("etcd %s does not read the key %s", v, key)
}

func fits(goType string, value any) bool {
	switch goType {
	case "string":
		return reflect.TypeOf(value) == reflect.TypeFor[string]()
	case "bool":
		return reflect.TypeOf(value) == reflect.TypeFor[bool]()
	case "[]string":
		return reflect.TypeOf(value) == reflect.TypeFor[[]any]()
	case "int", "uint", "int64", "uint64", "uint32", "time.Duration":
		n, isNumber := value.(float64)
		return isNumber && n >= 0 && n == math.Trunc(n)
	}
	return false
}

// TestUnsupportedOptionsAreRefused checks that an option is rejected for a version if and only if the configuration
// file of that version has no key for it.
func TestUnsupportedOptionsAreRefused(t *testing.T) {
	table := readKeys(t)
	for _, v := range releasesAround(table) {
		for name, o := range options {
			has := slices.ContainsFunc(table, func(k etcdKey) bool {
				return k.structName == "Config" && (k.key == name || k.key == o.key35) && v.AtLeast(k.first) && k.last.AtLeast(v)
			})
			if taken := v.AtLeast(o.since); taken != has {
				t.Errorf("etcd %s has option %s: %t, accepted: %t", v, name, has, taken)
			}
		}
	}
}

// TestCRDAcceptsKnownOptions checks that the custom resource accepts exactly the options that this package can write.
func TestCRDAcceptsKnownOptions(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(options)), "data-dir", "force-new-cluster", "initial-cluster") {
		o, known := options[name]
		object := map[string]any{
			"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster",
			"metadata": map[string]any{"name": "a", "namespace": "default"},
			"spec":     map[string]any{"version": "3.6.16", "etcd": map[string]any{"options": map[string]any{name: o.example()}}},
		}
		if err := schema.Default(object); err != nil {
			t.Fatal(err)
		}
		if problems := schema.Validate(object, nil); known != (len(problems) == 0) {
			t.Errorf("option %s: this package knows it: %t, the definition has %v", name, known, problems)
		}
	}
}
