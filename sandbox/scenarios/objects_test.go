package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	policies     = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	cronJobs     = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	budgets      = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// kinds lists the kinds of objects that quorate creates. The StatefulSet controller creates pods and claims.
var kinds = []schema.GroupVersionResource{services, configMaps, secrets, statefulSets, budgets, policies, cronJobs, etcdclusters}

// list returns the objects of a kind in the namespace, except those that Kubernetes creates in every namespace.
func (w *world) list(kind schema.GroupVersionResource) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.objects.Resource(kind).Namespace(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetName() == "kube-root-ca.crt" })
}

func (w *world) object(kind schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return w.objects.Resource(kind).Namespace(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
}

// ownObjects returns the names of all objects in the namespace that belong to the cluster and are deleted with it.
func (w *world) ownObjects(cluster string) []string {
	w.t.Helper()
	var names []string
	for _, kind := range kinds {
		for _, o := range w.list(kind) {
			names = append(names, o.GetKind()+" "+o.GetName())
		}
	}
	for _, pod := range w.pods(cluster) {
		names = append(names, "Pod "+pod.Name)
	}
	return names
}

func (w *world) pods(cluster string) []corev1.Pod {
	w.t.Helper()
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{LabelSelector: "etcd.quorate.dev/cluster=" + cluster})
	if err != nil {
		w.t.Fatal(err)
	}
	return pods.Items
}

// podUIDs returns the UIDs of the cluster's pods, by pod name. volumeUIDs returns the UIDs of the cluster's volume
// claims, by pod name.
func (w *world) podUIDs(cluster string) map[string]string {
	w.t.Helper()
	uids := map[string]string{}
	for _, pod := range w.pods(cluster) {
		uids[pod.Name] = string(pod.UID)
	}
	return uids
}

func (w *world) volumeUIDs(cluster string) map[string]string {
	w.t.Helper()
	uids := map[string]string{}
	for _, claim := range w.list(claims) {
		if name := strings.TrimPrefix(claim.GetName(), "data-"); strings.HasPrefix(name, cluster+"-") {
			uids[name] = string(claim.GetUID())
		}
	}
	return uids
}

// restarts returns the number of container restarts of the cluster's pods.
func (w *world) restarts(cluster string) int32 {
	w.t.Helper()
	n := int32(0)
	for _, pod := range w.pods(cluster) {
		for _, s := range pod.Status.ContainerStatuses {
			n += s.RestartCount
		}
	}
	return n
}

// snapshot describes the essence of every object in the namespace. Two clusters that were bootstrapped from the same
// declaration have equal snapshots, regardless of what happened afterwards.
func (w *world) snapshot() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, kind := range kinds {
		for _, o := range w.list(kind) {
			text, err := yaml.Marshal(essence(o))
			if err != nil {
				w.t.Fatal(err)
			}
			all[o.GetKind()+" "+o.GetName()] = w.impersonal(string(text))
		}
	}
	return all
}

// essence returns the content of an object without secret data and without fields that Kubernetes adds.
func essence(o unstructured.Unstructured) map[string]any {
	var owners []string
	for _, owner := range o.GetOwnerReferences() {
		owners = append(owners, owner.Kind+" "+owner.Name)
	}
	content := map[string]any{"labels": o.GetLabels(), "annotations": o.GetAnnotations(), "owners": owners, "spec": o.Object["spec"]}
	if o.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		content["keys"] = len(data)
		return content
	}
	content["data"] = withoutHistory(o.Object["data"])
	if spec, ok := o.Object["spec"].(map[string]any); ok {
		for _, given := range []string{"clusterIP", "clusterIPs", "volumeName"} {
			delete(spec, given)
		}
	}
	return content
}

// past matches the history of removed members in a record.
var past = regexp.MustCompile(`(?m)^replaced:\n(?:[- ].*\n)*|^joinedTogether: true\n`)

func withoutHistory(data any) any {
	files, ok := data.(map[string]any)
	if !ok {
		return data
	}
	for name, text := range files {
		files[name] = past.ReplaceAllString(fmt.Sprint(text), "")
	}
	return files
}

var (
	uid  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	hex  = regexp.MustCompile(`"[0-9a-f]{8,64}"|\b[0-9a-f]{8,64}\b`) // in YAML, tokens that look like numbers are quoted
	when = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	// fingerprint matches the fingerprint of the recorded CA.
	fingerprint = regexp.MustCompile(`\b[0-9A-F]{2}(:[0-9A-F]{2}){31}\b`)
	host        = regexp.MustCompile(`\bnode[-a-z0-9]*\b`)
)

// impersonal replaces the namespace and all generated values in text with placeholders.
func (w *world) impersonal(text string) string {
	text = strings.ReplaceAll(text, w.namespace, "NAMESPACE")
	text = uid.ReplaceAllString(text, "UID")
	text = fingerprint.ReplaceAllString(text, "FINGERPRINT")
	text = when.ReplaceAllString(text, "TIME")
	text = hex.ReplaceAllString(text, "HEX")
	return host.ReplaceAllString(text, "NODE")
}

// difference describes the differences between two snapshots. It returns "" if they are equal.
func difference(want, got map[string]string) string {
	var text strings.Builder
	for name, w := range want {
		if g, found := got[name]; !found {
			fmt.Fprintf(&text, "%s is missing\n", name)
		} else if g != w {
			fmt.Fprintf(&text, "%s differs:\n--- want\n%s+++ got\n%s", name, w, g)
		}
	}
	for name := range got {
		if _, found := want[name]; !found {
			fmt.Fprintf(&text, "%s is too much\n", name)
		}
	}
	return text.String()
}

// TestImpersonal checks that tokens that look like numbers are also replaced.
func TestImpersonal(t *testing.T) {
	t.Parallel()
	w := &world{namespace: "here"}
	for _, token := range []string{"0a1b2c3d", "12345678", "1234567890123e45", "00000000"} {
		text, err := yaml.Marshal(map[string]string{"name": "here-a-" + token, "token": token})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w.impersonal(string(text)), "name: NAMESPACE-a-HEX\ntoken: HEX\n"; got != want {
			t.Errorf("%s becomes\n%swant\n%s", text, got, want)
		}
	}
}
