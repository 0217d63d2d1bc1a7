package schema

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestImmense: what takes seconds to compare is told apart in no time, and nobody's usual quantity
// is.
func TestImmense(t *testing.T) {
	const want = "spec.pod.resources.limits.memory: a quantity has at most 18 digits before or after its point"
	for text, immense := range map[string]bool{
		"8Gi": false, "100m": false, "1e9": false, "1.5Ei": false, "999999999999999999": false, "0": false, "1n": false, "1e18": false,
		"1e19": true, "1e20000000": true, "1e2000000000": true,
	} {
		var spec v1alpha1.EtcdClusterSpec
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(err)
		}
		spec.Pod.Resources.Limits = map[string]resource.Quantity{"memory": q, "cpu": resource.MustParse("1")}
		began := time.Now()
		if got := Immense(spec); slices.Contains(got, want) != immense || len(got) > 1 {
			t.Errorf("%s: %q", text, got)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: it took %s", text, took)
		}
	}
}
