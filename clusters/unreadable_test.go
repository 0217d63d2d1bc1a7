package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestUnreadableResourceFailsOnlyItsCluster checks that a custom resource that the API server accepts but Go cannot
// decode causes an error only for its own cluster, which is not treated as absent.
func TestUnreadableResourceFailsOnlyItsCluster(t *testing.T) {
	s := newStage(t)
	for name, size := range map[string]string{"a": "8Gi", "bad": "1e1.5"} {
		object := fmt.Sprintf(`{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": %q}, "spec": {"version": "3.6.16", "storage": {"size": %q}}}`, name, size)
		created := s.server.Client.CoreV1().RESTClient().Post().AbsPath("/apis/etcd.quorate.dev/v1alpha1/namespaces/default/etcdclusters").Body([]byte(object)).Do(t.Context())
		if err := created.Error(); err != nil {
			t.Fatal(err)
		}
	}
	for _, desired := range []reconcile.Desired{{Live: true}, {Clusters: []reconcile.Declaration{{Cluster: v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}}}}}} {
		seen, err := s.live.Observe(t.Context(), desired, nil)
		if err != nil || len(seen.Clusters) == 0 {
			t.Fatalf("%d clusters: %v", len(seen.Clusters), err)
		}
		for _, c := range seen.Clusters {
			_, name := c.Identity()
			_, err := c.State(t.Context())
			if unreadable := err != nil && strings.Contains(err.Error(), "must be corrected"); unreadable != (name == "bad") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	sorter := inventory.NewSorter(inventory.AnyCluster)
	if _, err := s.live.kube.List(t.Context(), "default", objects.Managed, sorter); err != nil {
		t.Fatal(err)
	}
	for k, own := range sorter.Listed() {
		c := s.live.newCluster(targets.Target{Cluster: *own.Custom}, own, nil)
		_, err := c.State(t.Context())
		unreadable := err != nil && strings.Contains(err.Error(), "EtcdCluster default/bad is invalid and must be corrected: ")
		if bad := k.Name == "bad"; unreadable != bad || own.Custom.UID == "" {
			t.Errorf("%s: %v", k, err)
		}
		if k.Name == "bad" {
			if _, err := c.Report(t.Context(), report.Cluster{Error: "x"}, reconcile.SourceStatus{}); err != nil {
				t.Errorf("its status is written: %v", err)
			}
		}
	}
}

// TestCRDRulesAreEvaluatedInTime checks that the API server evaluates the CRD's rules within seconds for any
// declaration, because other requests have to wait for the evaluation.
func TestCRDRulesAreEvaluatedInTime(t *testing.T) {
	s := newStage(t)
	declare := func(spec string) (time.Duration, error) {
		object := fmt.Sprintf(`{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": "a"}, "spec": {"version": "3.6.16", %s}}`, spec)
		began := time.Now()
		err := s.server.Client.CoreV1().RESTClient().Post().AbsPath("/apis/etcd.quorate.dev/v1alpha1/namespaces/default/etcdclusters").
			Param("dryRun", "All").Body([]byte(object)).Do(t.Context()).Error()
		return time.Since(began), err
	}
	if _, err := declare(`"replicas": 3`); err != nil { // compiles the rules
		t.Fatal(err)
	}
	long := strings.Repeat("a", 1<<20)
	for name, spec := range map[string]string{
		"limit":            `"pod": {"resources": {"limits": {"example.com/x": "1e20000000"}}}`,
		"small limit":      `"pod": {"resources": {"limits": {"memory": "1e-20000000"}}}`,
		"request":          `"pod": {"resources": {"limits": {"cpu": "1e20000000"}, "requests": {"cpu": "-1e20000000"}}}`,
		"size":             `"storage": {"size": "1e20000000"}`,
		"quota":            `"etcd": {"quota": "1e-20000000"}`,
		"request's bytes":  `"etcd": {"maxRequestBytes": "1e20000000"}`,
		"many digits":      `"pod": {"resources": {"limits": {"cpu": "` + strings.Repeat("9", 1<<20) + `"}}}`,
		"long label":       `"pod": {"labels": {"` + long + `": "x"}}`,
		"long annotation":  `"pod": {"annotations": {"` + long + `/a": "x"}}`,
		"long peer":        `"networkPolicy": {"clients": [{"pods": {"` + long + `": "x"}}]}`,
		"long selector":    `"pod": {"nodeSelector": {"x": "` + long + `"}}`,
		"long option":      `"etcd": {"options": {"` + long + `": "1"}}`,
		"long digest":      `"image": {"digests": {"3.6.` + strings.Repeat("1", 1<<20) + `": "x"}}`,
		"long duration":    `"replaceAfter": "` + strings.Repeat("99999h", 1<<17) + `"`,
		"long repository":  `"image": {"repository": "` + strings.Repeat("a/", 1<<19) + `a"}`,
		"long credentials": `"backup": {"schedule": "@daily", "to": {"secretName": "` + long + `", "s3": {"bucket": "abc", "endpoint": "https://` + long + `"}}}`,
	} {
		took, err := declare(spec)
		t.Logf("%s: %s", name, took.Round(time.Millisecond))
		if !apierrors.IsInvalid(err) || took > 5*time.Second {
			t.Errorf("%s took %s: %.300v", name, took, err)
		}
	}
}
