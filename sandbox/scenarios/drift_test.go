package scenarios

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// disturbance is a manual change to an object of cluster a.
type disturbance struct {
	name   string
	kind   schema.GroupVersionResource
	object string
	// patch is a strategic merge patch in which FILE is replaced with the name of a-0's configuration file. If it is
	// empty, the object is deleted.
	patch string
}

var disturbances = []disturbance{
	{"headless service changed", services, "a", `{"spec":{"publishNotReadyAddresses":false}}`},
	{"headless service deleted", services, "a", ""},
	{"client service changed", services, "a-client", `{"spec":{"selector":{"app.kubernetes.io/name":"other"}}}`},
	{"client service deleted", services, "a-client", ""},
	{"budget changed", budgets, "a", `{"spec":{"minAvailable":0}}`},
	{"budget deleted", budgets, "a", ""},
	{"config of a member changed", configMaps, "a-members", `{"data":{"FILE":"name: other\n"}}`},
	{"statefulset changed", statefulSets, "a", `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`},
	{"label changed", statefulSets, "a", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"other"}}}`},
	{"image changed", statefulSets, "a", `{"spec":{"template":{"spec":{"containers":[{"name":"etcd","image":"gcr.io/etcd-development/etcd:v3.5.35"}]}}}}`},
	{"statefulset deleted", statefulSets, "a", ""},
	{"server certificate deleted", secrets, "a-server-tls", ""},
	{"peer certificate deleted", secrets, "a-peer-tls", ""},
	{"client certificate deleted", secrets, "a-client-tls", ""},
	{"client certificate changed", secrets, "a-client-tls", `{"data":{"tls.crt":"bm9uZQ=="}}`},
	{"custom resource changed", etcdclusters, "a", `{"spec":{"replicas":5}}`},
	{"label taken away", services, "a-client", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`},
}

// testDriftRepaired manually changes and deletes objects of each kind. The next pass must repair them without
// restarting pods.
func testDriftRepaired(t *testing.T, w *world) {
	want := w.snapshot()
	pods, restarts := w.podUIDs("a"), w.restarts("a")
	for _, d := range disturbances {
		t.Run(d.name, func(t *testing.T) {
			w := w.as(t)
			w.disturb(d)
			changed := w.snapshot()
			if difference(want, changed) == "" && !strings.Contains(d.name, "certificate changed") {
				t.Fatal("nothing was disturbed")
			}
			w.runFrom(outside, "plan", "--detailed-exitcode").requireCode(t, exitChanges)
			w.runFrom(outside, "run", "--detailed-exitcode").requireCode(t, exitChanges)
			w.converge()
			if wrong := difference(want, w.snapshot()); wrong != "" {
				t.Errorf("not repaired: %s", wrong)
			}
			if now := w.podUIDs("a"); !maps.Equal(now, pods) || w.restarts("a") != restarts {
				t.Errorf("pods before %v, after %v; %d restarts", pods, now, w.restarts("a")-restarts)
			}
			w.requireQuiet("a")
		})
	}
	w.requireOneCluster("a", 3)
}

func (w *world) disturb(d disturbance) {
	w.t.Helper()
	client := w.objects.Resource(d.kind).Namespace(w.namespace)
	var err error
	if d.patch == "" {
		orphan := metav1.DeletePropagationOrphan
		err = client.Delete(w.ctx(), d.object, metav1.DeleteOptions{PropagationPolicy: &orphan})
		eventually(w.t, d.name, func() error {
			if _, err := w.object(d.kind, d.object); err == nil {
				return fmt.Errorf("%s %s is still there", d.kind.Resource, d.object)
			}
			return nil
		})
	} else {
		patchType := types.StrategicMergePatchType
		if d.kind == etcdclusters {
			patchType = types.MergePatchType
		}
		patch := strings.ReplaceAll(d.patch, "FILE", w.fileOf("a-0"))
		_, err = client.Patch(w.ctx(), d.object, patchType, []byte(patch), metav1.PatchOptions{FieldManager: "by-hand"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// fileOf returns the name of a member's configuration file, which is its key in the ConfigMap. The name also identifies
// the spec with which the pod was created.
func (w *world) fileOf(pod string) string {
	w.t.Helper()
	record, err := w.object(configMaps, "a-members")
	if err != nil {
		w.t.Fatal(err)
	}
	for key := range record.Object["data"].(map[string]any) {
		if strings.HasPrefix(key, pod+"-") {
			return key
		}
	}
	w.t.Fatalf("no configuration file of %s: %v", pod, record.Object["data"])
	return ""
}

// testLostRecord manually deletes the record of the members. The record must be rebuilt from the volumes and etcd, and
// a member must start with the rebuilt record.
func testLostRecord(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	pods := w.podUIDs("a")
	w.disturb(disturbance{"record deleted", configMaps, "a-members", ""})
	w.converge()
	record, err := w.object(configMaps, "a-members")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(record.Object["data"]), "initial-cluster-state: new") {
		t.Errorf("the new record could found a second cluster: %v", record.Object["data"])
	}
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	w.deletePod("a-1")
	w.waitForPods("a", 3)
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	w.converge()
}

// testCALost checks that a missing CA is not replaced, because members would then reject each other.
func testCALost(t *testing.T, w *world) {
	ca, err := w.object(secrets, "a-ca")
	if err != nil {
		t.Fatal(err)
	}
	w.disturb(disturbance{"CA deleted", secrets, "a-ca", ""})
	r := w.run("--until-converged", "--timeout", "1m")
	_, err = w.object(secrets, "a-ca")
	w.recreate(secrets, ca)
	if err == nil {
		t.Error("another CA was created")
	}
	if r.requireCode(t, exitBlocked); !r.says("a-ca") {
		t.Errorf("quorate does not report the loss:\n%s", r)
	}
	w.requireCondition("a", "Stalled", "True", "CALost")
	w.converge().requireRule(t, "a", "Converged")
	w.requireCondition("a", "Stalled", "False", "")
}

// recreate creates a deleted object again without changes.
func (w *world) recreate(kind schema.GroupVersionResource, object *unstructured.Unstructured) {
	w.t.Helper()
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetUID("")
	if _, err := w.objects.Resource(kind).Namespace(w.namespace).Create(w.ctx(), object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
