package kube

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHugeQuantityIsNotDecoded checks that a custom resource with a quantity that would take minutes to decode causes
// only an error for that resource. An older definition may have accepted the quantity. The other known data is still
// returned.
func TestHugeQuantityIsNotDecoded(t *testing.T) {
	for _, text := range []string{"1e-200000000", "1e200000000", strings.Repeat("9", 1<<22)} {
		item := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": map[string]any{"name": "a", "namespace": "shop"},
			"spec": map[string]any{"pod": map[string]any{"resources": map[string]any{"limits": map[string]any{"example.com/x": text}}}},
		}}
		began := time.Now()
		custom, err := readCluster(item)
		const want = "EtcdCluster shop/a is invalid and must be corrected: spec.pod.resources.limits.example.com/x: a quantity may have"
		if err == nil || !strings.HasPrefix(err.Error(), want) || custom.Name != "a" || time.Since(began) > time.Second {
			t.Errorf("%.20s: %v in %s", text, err, time.Since(began))
		}
	}
}
