package inventory

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// kinds contains an object of each listed kind.
var kinds = []kube.Object{&coordinationv1.Lease{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{},
	&appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &batchv1.CronJob{}, &batchv1.Job{}}

func another(of kube.Object) kube.Object {
	return reflect.New(reflect.TypeOf(of).Elem()).Interface().(kube.Object)
}

// golden returns the objects in a golden file, with the fields that the API server adds, and additionally a lease and
// pods of each type.
func golden(t *testing.T, file string) (list []kube.Object) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "objects.yaml" })
	for _, text := range bytes.Split(archive.Files[i].Data, []byte("---\n"))[1:] {
		list = append(list, decoded(t, text))
	}
	k := keyOf(list[0])
	for _, component := range []string{"", "backup", "drill", "restore", "recovery"} {
		pod, job := &corev1.Pod{}, &batchv1.Job{}
		for _, o := range list {
			if set, is := o.(*appsv1.StatefulSet); is {
				pod.ObjectMeta, pod.Spec = *set.Spec.Template.ObjectMeta.DeepCopy(), set.Spec.Template.Spec
				job.Spec.Template = set.Spec.Template
			}
		}
		pod.Name, pod.Namespace, pod.Labels = "a-0"+component, k.Namespace, objects.Labels(k.Name)
		if component != "" {
			pod.Labels["app.kubernetes.io/component"] = component
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1_800_000_000, 0))}}}
		job.Name, job.Namespace, job.Labels = "job-"+component, k.Namespace, pod.Labels
		list = append(list, pod, job)
	}
	holder, now := "host/1/boot", metav1.NewMicroTime(time.Unix(1_800_000_000, 123_456_000))
	list = append(list, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.Name, Namespace: k.Namespace, Labels: objects.Labels(k.Name)},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now}})
	for _, o := range list {
		o.SetResourceVersion("7")
		o.SetCreationTimestamp(metav1.NewTime(time.Unix(1_800_000_000, 0)))
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "quorate", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)}})
	}
	return list
}

func keyOf(o kube.Object) Key { return Key{o.GetNamespace(), objects.ClusterOf(o.GetLabels())} }

// decoded decodes an object from YAML. For Secrets, golden files contain only the keys of the data.
func decoded(t *testing.T, text []byte) kube.Object {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if keys, is := fields["data"].([]any); is {
		data := map[string]any{}
		for _, key := range keys {
			data[key.(string)] = "c2VjcmV0"
		}
		fields["data"] = data
	}
	i := slices.IndexFunc(kinds, func(o kube.Object) bool { return kindOf(o) == fields["kind"] })
	if i < 0 {
		t.Fatalf("a %s is not listed", fields["kind"])
	}
	object := another(kinds[i])
	text, err := yaml.Marshal(fields)
	if err == nil {
		err = yaml.UnmarshalStrict(text, object)
	}
	if err != nil {
		t.Fatal(err)
	}
	reflect.ValueOf(object).Elem().FieldByName("TypeMeta").SetZero() // lists omit it
	return object
}

// all returns the objects of a cluster by kind/name.
func all(c *Cluster) map[string]kube.Object {
	found := map[string]kube.Object{}
	add := func(o metav1.Object) { found[kindOf(o)+"/"+o.GetName()] = o.(kube.Object) }
	for _, o := range c.Objects {
		add(o)
	}
	for _, pod := range slices.Concat(c.Pods, c.BackupPods, c.VolumePods) {
		add(pod)
	}
	for _, claim := range c.Claims {
		add(claim)
	}
	for _, job := range c.BackupJobs {
		add(job)
	}
	if c.Lease != nil {
		add(c.Lease)
	}
	return found
}

func sorted(t *testing.T, opens func(Key) bool, list ...kube.Object) ByCluster {
	t.Helper()
	sorter := NewSorter(opens)
	for _, o := range list {
		if err := sorter.Take(o); err != nil {
			t.Fatal(err)
		}
	}
	return sorter.Listed()
}

// told returns the cluster ID that is known if the status does not contain it.
func told(l *Listed) decide.ID {
	unreported := *l
	unreported.Custom = &v1alpha1.EtcdCluster{}
	return unreported.ClusterID()
}

func goldenFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../testdata/objects/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	return files
}

// TestOpenReturnsListedObjects checks that opening a cluster returns every listed object unchanged, and that the data
// available before opening agrees with these objects.
func TestOpenReturnsListedObjects(t *testing.T) {
	met := map[string]bool{}
	for _, file := range goldenFiles(t) {
		list := golden(t, file)
		want, delivered := map[string]kube.Object{}, map[string]kube.Object{}
		for _, o := range list {
			id := kindOf(o) + "/" + o.GetName()
			met[kindOf(o)], want[id], delivered[id] = true, o, another(o)
			if body, err := o.Marshal(); err != nil || delivered[id].Unmarshal(body) != nil {
				t.Fatalf("%s: %v", id, err)
			}
		}
		listed := sorted(t, AnyCluster, slices.Collect(maps.Values(delivered))...)[keyOf(list[0])]
		own, err := listed.Open()
		if err != nil {
			t.Fatal(err)
		}
		found := all(own)
		for id := range want {
			if other := cmp.Diff(delivered[id], found[id]); other != "" || !equality.Semantic.DeepEqual(found[id], want[id]) {
				t.Errorf("%s: %s is different: %s", file, id, other)
			}
		}
		if len(found) != len(want) || listed.Applied != len(own.Objects) || listed.Pods != len(own.Pods) || listed.Claims != len(own.Claims) {
			t.Errorf("%d objects, want %d; reported are %+v, found %d, %d and %d", len(found), len(want), listed, len(own.Objects), len(own.Pods), len(own.Claims))
		}
		record, err := own.Record(objects.NamesOf(keyOf(list[0]).Name))
		if err != nil || !listed.HasConfigMap || told(listed) != record.ClusterID {
			t.Errorf("%s: the record %+v, %v; reported is %q", file, record, err, listed.Record)
		}
	}
	if len(met) != len(kinds) {
		t.Errorf("met %v, want all kinds", slices.Sorted(maps.Keys(met)))
	}
}

// TestClusterOpensOnlyOnce checks that objects are not kept after opening, and that the cluster is not mistaken for an
// empty cluster afterwards.
func TestClusterOpensOnlyOnce(t *testing.T) {
	list := golden(t, goldenFiles(t)[0])
	owned, k := sorted(t, AnyCluster, list...), keyOf(list[0])
	owned[k].Custom = &v1alpha1.EtcdCluster{}
	listed, believed := owned.Of(k), *owned.Of(k)
	if own, err := listed.Open(); err != nil || len(own.Pods) != 1 || own.Custom != listed.Custom {
		t.Fatalf("%+v, %v", own, err)
	}
	if listed.contents.objects != nil || listed.Pods != 1 || listed.Empty() || !listed.HasConfigMap {
		t.Errorf("%d objects are kept; reported is %+v", len(listed.contents.objects), listed)
	}
	for _, again := range []*Listed{listed, &believed} {
		if own, err := again.Open(); own != nil || !errors.Is(err, errGone) {
			t.Errorf("%+v, %v", own, err)
		}
	}
}

// TestUnwantedClustersAreNotKept checks that, for clusters that may not be opened, only the data that is needed for all
// clusters is kept.
func TestUnwantedClustersAreNotKept(t *testing.T) {
	list := golden(t, goldenFiles(t)[0])
	owned := sorted(t, func(k Key) bool { return k != keyOf(list[0]) }, list...)
	listed := owned.Of(keyOf(list[0]))
	if len(listed.contents.objects) > 0 || listed.Pods != 1 || listed.Applied == 0 || listed.Record == "" {
		t.Errorf("%d objects are kept; reported is %+v", len(listed.contents.objects), listed)
	}
	if own, err := listed.Open(); own != nil || !errors.Is(err, errGone) {
		t.Errorf("%+v, %v", own, err)
	}
	if own, err := owned.Of(Key{"default", "none"}).Open(); err != nil || len(all(own)) > 0 {
		t.Errorf("a missing cluster: %+v, %v", own, err)
	}
}

// TestUnpackErrorReturnsNothing checks that nothing is returned if one object of a cluster cannot be unpacked.
func TestUnpackErrorReturnsNothing(t *testing.T) {
	list := golden(t, goldenFiles(t)[0])
	for i, o := range list {
		listed := sorted(t, AnyCluster, list...)[keyOf(o)]
		p := &listed.contents.objects[i]
		p.body = p.body[:len(p.body)-1]
		own, err := listed.Open()
		if own != nil || err == nil || !strings.HasPrefix(err.Error(), "unpack a listed "+kindOf(o)+": ") {
			t.Errorf("%s: %+v, %v", kindOf(o), own, err)
		}
	}
}
