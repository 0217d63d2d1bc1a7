package objects

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// speller creates random declarations and rewrites them in different notations.
type speller struct{ *rand.Rand }

func (s speller) one(of ...string) string { return of[s.IntN(len(of))] }

// declaration returns a declaration with random values for everything that affects how a pod runs.
func (s speller) declaration(t *testing.T) *v1alpha1.EtcdCluster {
	t.Helper()
	c := threeMembers(t, s.one("3.5.21", "3.6.16", "3.7.3"))
	s.fill(reflect.ValueOf(&c.Spec.Etcd).Elem())
	s.fill(reflect.ValueOf(&c.Spec.Pod).Elem())
	if a := c.Spec.Etcd.AutoCompaction; a != nil {
		a.Mode, a.Retention = v1alpha1.CompactionPeriodic, s.one("1m", "90s", "1h", "36h")
		if s.IntN(2) == 0 {
			a.Mode, a.Retention = v1alpha1.CompactionRevision, s.one("1000", "1")
		}
	}
	if c.Spec.Etcd.Options = nil; s.IntN(3) > 0 {
		c.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{"corrupt-check-time": v1alpha1.OptionValue(s.one("1h", "90m", "5s")),
			"max-wals": v1alpha1.OptionValue(s.one("0", "7")), "log-level": v1alpha1.OptionValue(s.one("info", "warn"))}
	}
	c.Spec.Image.Repository = s.one("gcr.io/etcd-development/etcd", "registry.example.com/etcd")
	c.Spec.TLS.Mode = v1alpha1.TLSMode(s.one(string(v1alpha1.TLSManaged), string(v1alpha1.TLSDisabled)))
	return c
}

// fill sets a random value. It may leave pointers, lists and maps empty.
func (s speller) fill(v reflect.Value) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(quantity(s.one("1", "1500m", "2Gi", "100M", "1536Ki", "1", "250m"))))
		return
	case v1alpha1.Duration:
		v.SetString(s.one("100ms", "1s", "1500ms", "5s"))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if s.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			s.fill(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			s.fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), s.IntN(3), 3))
		for i := range v.Len() {
			s.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range s.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			s.fill(key)
			s.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(s.one("cpu", "memory", "zone", "Exists", "DoNotSchedule", ""))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(1 + s.IntN(9)))
	default:
		panic(v.Type().String())
	}
}

// respelled returns the same declaration in a different notation.
func (s speller) respelled(c *v1alpha1.EtcdCluster) *v1alpha1.EtcdCluster {
	c = c.DeepCopy()
	s.respell(reflect.ValueOf(&c.Spec).Elem())
	if a := c.Spec.Etcd.AutoCompaction; a != nil && a.Mode == v1alpha1.CompactionPeriodic {
		a.Retention = s.duration(a.Retention)
	}
	for name, value := range c.Spec.Etcd.Options {
		switch options[name].kind {
		case duration:
			c.Spec.Etcd.Options[name] = v1alpha1.OptionValue(s.duration(string(value)))
		case number:
			c.Spec.Etcd.Options[name] = "00" + value
		default: // words have only one notation
		}
	}
	r := &c.Spec.Pod.Resources
	for name, limit := range r.Limits {
		requested, is := r.Requests[name]
		if is && requested.Cmp(limit) == 0 {
			delete(r.Requests, name)
		} else if !is && s.IntN(2) == 0 {
			if r.Requests == nil {
				r.Requests = map[string]resource.Quantity{}
			}
			r.Requests[name] = limit
		}
	}
	for i := range c.Spec.Pod.Tolerations {
		if t := &c.Spec.Pod.Tolerations[i]; t.Operator == "" {
			t.Operator = s.one("", "Equal")
		}
	}
	own := &metav1.LabelSelector{MatchLabels: Selector(c.Name)}
	spread := &c.Spec.Pod.TopologySpreadConstraints
	if len(*spread) == 0 && s.IntN(2) == 0 {
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
			*spread = append(*spread, v1alpha1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: "ScheduleAnyway"})
		}
	}
	for i := range *spread {
		constraint := &(*spread)[i]
		if constraint.LabelSelector == nil && s.IntN(2) == 0 {
			constraint.LabelSelector = own
		}
		if constraint.WhenUnsatisfiable == "DoNotSchedule" {
			spelledOut(s, &constraint.MinDomains, 1)
		}
		spelledOut(s, &constraint.NodeAffinityPolicy, "Honor")
		spelledOut(s, &constraint.NodeTaintsPolicy, "Ignore")
	}
	return c
}

func (s speller) respell(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*value = s.quantity(*value)
		return
	case *v1alpha1.Duration:
		*value = v1alpha1.Duration(s.duration(string(*value)))
		return
	case **v1alpha1.Affinity:
		emptied(s, value)
	case **v1alpha1.NodeAffinity:
		emptied(s, value)
	case **v1alpha1.PodAffinity:
		emptied(s, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			s.respell(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				s.respell(field)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set([]reflect.Value{reflect.Zero(v.Type()), reflect.MakeSlice(v.Type(), 0, 0)}[s.IntN(2)])
		}
		for i := range v.Len() {
			s.respell(v.Index(i))
		}
	case reflect.Map:
		if v.Len() == 0 {
			v.Set([]reflect.Value{reflect.Zero(v.Type()), reflect.MakeMap(v.Type())}[s.IntN(2)])
		}
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			s.respell(value)
			v.SetMapIndex(key, value)
		}
	default: // the value has only one notation
	}
}

// emptied sometimes replaces a missing part with an empty part.
func emptied[T any](s speller, part **T) {
	if *part == nil && s.IntN(2) == 0 {
		*part = new(T)
	}
}

// spelledOut sometimes sets a missing value to its default.
func spelledOut[T any](s speller, value **T, byDefault T) {
	if *value == nil && s.IntN(2) == 0 {
		*value = &byDefault
	}
}

func (s speller) duration(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text
	}
	spellings := []string{d.String(), fmt.Sprintf("%dms", d.Milliseconds())}
	for suffix, unit := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour} {
		if d%unit == 0 {
			spellings = append(spellings, fmt.Sprintf("%d%s", d/unit, suffix))
		}
	}
	slices.Sort(spellings)
	return s.one(spellings...)
}

func (s speller) quantity(q resource.Quantity) resource.Quantity {
	if q.IsZero() {
		return q
	}
	spellings := []string{q.String(), fmt.Sprintf("%dm", q.MilliValue()), fmt.Sprintf("%d.%03d", q.MilliValue()/1000, q.MilliValue()%1000)}
	for _, format := range []resource.Format{resource.BinarySI, resource.DecimalSI, resource.DecimalExponent} {
		q.Format = format
		digits, suffix := q.CanonicalizeBytes(make([]byte, 0, 18))
		spellings = append(spellings, string(digits)+string(suffix))
	}
	return quantity(s.one(spellings...))
}

// inputOf returns the build input for a declaration, as in a pass.
func inputOf(c *v1alpha1.EtcdCluster, k Certificates) Input {
	c = c.DeepCopy()
	Normalize(c)
	return Input{Cluster: c, Record: record(3, decide.Sealed), Voters: 3, Certificates: k, BackupImage: "quorate:v1"}
}

func inJSON(t *testing.T, what any) string {
	t.Helper()
	encoded, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// shown returns the pod template and member options of an input as JSON.
func shown(t *testing.T, in Input) string {
	t.Helper()
	template, err := podTemplate(in.Cluster, Template{"1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	options, err := declaredOptions(in)
	if err != nil {
		t.Fatal(err)
	}
	return inJSON(t, template) + inJSON(t, options)
}

// TestSpellingDoesNotChangeHash checks that two declarations with the same meaning have the same hash and objects,
// regardless of their notation. Pods that were created from one of them before hashes were normalized match the other.
func TestSpellingDoesNotChangeHash(t *testing.T) {
	s, k := speller{rand.New(rand.NewPCG(1, 2))}, certificates(t, threeMembers(t, "3.6.16"))
	for range 150 {
		a := s.declaration(t)
		b := s.respelled(a)
		inA, inB := inputOf(a, k), inputOf(b, k)
		objectsA, objectsB := inJSON(t, build(t, inA)), inJSON(t, build(t, inB))
		if SpecHash(a) != SpecHash(b) || objectsA != objectsB {
			t.Fatalf("spelled as\n%s\n\nnormalised\n%s\n\nobjects\n%s", differenceOf(t, a.Spec, b.Spec), differenceOf(t, inA.Cluster.Spec, inB.Cluster.Spec), cmp.Diff(objectsA, objectsB))
		}
		for _, c := range []*v1alpha1.EtcdCluster{a, b} {
			if again := inputOf(c, k).Cluster; SpecHash(again) != SpecHash(a) || !reflect.DeepEqual(inputOf(again, Certificates{}).Cluster, again) {
				t.Fatalf("normalized twice, %s is different", inJSON(t, c.Spec))
			}
		}
		before := asBefore(a, k)
		inB.Runs, inB.Live = before.Declared, filesOf(t, before)
		set, err := statefulSet(before)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := RunsDeclared(inB, set); err != nil || !same {
			t.Fatalf("%v: pods created from\n%s\ndo not match those of\n%s", err, inJSON(t, a.Spec), inJSON(t, b.Spec))
		}
	}
}

// asBefore returns the build input from before declarations were normalized.
func asBefore(c *v1alpha1.EtcdCluster, k Certificates) Input {
	return Input{Cluster: c, Record: record(3, decide.Sealed), Voters: 3, Certificates: k, Declared: Template{c.Spec.Version, spelledHash(c)}}
}

func differenceOf(t *testing.T, a, b any) string { return cmp.Diff(inJSON(t, a), inJSON(t, b)) }

// TestHashChangesWithPods checks that the hash changes if and only if the pods or the files of the members change.
func TestHashChangesWithPods(t *testing.T) {
	s, k := speller{rand.New(rand.NewPCG(3, 4))}, certificates(t, threeMembers(t, "3.6.16"))
	changed := 0
	for range 150 {
		a := s.declaration(t)
		b := a.DeepCopy()
		other := s.declaration(t)
		other.Spec.Version = a.Spec.Version
		part := s.one("Image", "TLS", "Etcd", "Pod", "Pod")
		s.mix(reflect.ValueOf(&b.Spec).Elem().FieldByName(part), reflect.ValueOf(&other.Spec).Elem().FieldByName(part))
		inA, inB := inputOf(a, k), inputOf(b, k)
		sameHash, samePods := SpecHash(a) == SpecHash(b), shown(t, inA) == shown(t, inB)
		if sameHash != samePods {
			t.Fatalf("hashes %s and %s\n%s\n\nwhat the pods show\n%s", SpecHash(a), SpecHash(b), differenceOf(t, a.Spec, b.Spec), cmp.Diff(shown(t, inA), shown(t, inB)))
		}
		if samePods {
			continue
		}
		changed++
		before := asBefore(a, k)
		inB.Runs, inB.Live = before.Declared, filesOf(t, before)
		set, err := statefulSet(before)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := RunsDeclared(inB, set); err != nil || same {
			t.Fatalf("%v: pods created from\n%s\nare treated as those of\n%s", err, inJSON(t, a.Spec), inJSON(t, b.Spec))
		}
	}
	if changed < 75 {
		t.Errorf("only %d of them differed", changed)
	}
}

// mix copies one field from another declaration.
func (s speller) mix(into, from reflect.Value) {
	for {
		field := s.IntN(into.NumField())
		if into.Field(field).Kind() != reflect.Struct || into.Field(field).Type() == reflect.TypeFor[resource.Quantity]() {
			into.Field(field).Set(from.Field(field))
			return
		}
		into, from = into.Field(field), from.Field(field)
	}
}

// TestNormalizationKeepsUsualHashes checks that normalization does not change the hash of declarations in the most
// common notation.
func TestNormalizationKeepsUsualHashes(t *testing.T) {
	for _, spec := range []string{
		"version: 3.6.16",
		"version: 3.6.16\n  etcd: {quota: 4Gi, autoCompaction: {mode: Periodic, retention: 1h}, heartbeatInterval: 200ms, electionTimeout: 2s, maxRequestBytes: 2Mi}",
		"version: 3.6.16\n  etcd: {autoCompaction: {mode: Revision, retention: '1000'}, options: {corrupt-check-time: 4h, max-wals: '7', log-level: warn}}",
		"version: 3.6.16\n  pod: {resources: {requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 512Mi}}}",
		"version: 3.6.16\n  pod: {resources: {requests: {cpu: '2', memory: 8Gi}, limits: {cpu: '4', memory: 8Gi}}, priorityClassName: x, nodeSelector: {a: b}}",
		"version: 3.6.16\n  pod: {tolerations: [{key: a, operator: Exists}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
		"version: 3.6.16\n  pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: x, labelSelector: {}, namespaceSelector: {}}]}}}",
	} {
		c := cluster(t, "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a, namespace: default}\nspec:\n  "+spec+"\n")
		if SpecHash(c) != spelledHash(c) {
			t.Errorf("%s: its pods would be restarted", spec)
		}
	}
}

// TestHugeQuantitiesDoNotDelayHash checks that a quantity with millions of digits can be hashed quickly.
func TestHugeQuantitiesDoNotDelayHash(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	immense := quantity("1e20000000")
	c.Spec.Storage.Size, c.Spec.Etcd.Quota = immense, immense
	c.Spec.Pod.Resources.Limits = map[string]resource.Quantity{"example.com/x": immense}
	before := time.Now()
	SpecHash(c)
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func BenchmarkSpecHash(b *testing.B) {
	t := &testing.T{}
	c := threeMembers(t, "3.6.16")
	for name, hash := range map[string]func(*v1alpha1.EtcdCluster) string{"normal": SpecHash, "spelled": spelledHash} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hash(c)
			}
		})
	}
}
