package objects

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster decodes an EtcdCluster, applies the defaults of the EtcdCluster definition, and sets a UID.
func cluster(t *testing.T, text string) *v1alpha1.EtcdCluster {
	t.Helper()
	var declared unstructured.Unstructured // decodes whole numbers as integers
	if err := yaml.UnmarshalStrict([]byte(text), &declared); err != nil {
		t.Fatal(err)
	}
	object := declared.Object
	if err := schema.Default(object); err != nil {
		t.Fatal(err)
	}
	if problems := schema.Validate(object, nil); len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	c, err := convert[*v1alpha1.EtcdCluster](object)
	if err != nil {
		t.Fatal(err)
	}
	c.UID = "11111111-2222-3333-4444-555555555555"
	return c
}

// threeMembers returns a cluster that declares only its version.
func threeMembers(t *testing.T, version string) *v1alpha1.EtcdCluster {
	t.Helper()
	return cluster(t, `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: a, namespace: default}
spec: {version: `+version+`}
`)
}

// record returns the record of n members with the same mode.
func record(n int, mode decide.Mode) decide.Record {
	r := decide.FoundingRecord("f00d", n)
	for i := range r.Members {
		r.Members[i].Mode = mode
	}
	return r
}

func certificates(t *testing.T, c *v1alpha1.EtcdCluster) Certificates {
	t.Helper()
	if !secure(c) {
		return Certificates{}
	}
	k, err := NewCertificates(c, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// fileOf returns the configuration file of the pod with the given ordinal and the declared template.
func fileOf(t *testing.T, in Input, ordinal int) string {
	t.Helper()
	return filesOf(t, in)[ConfigKey(PodName(in.Cluster.Name, ordinal), DeclaredTemplate(in.Cluster))]
}

// filesOf returns the data of the ConfigMap.
func filesOf(t *testing.T, in Input) map[string]string {
	t.Helper()
	configMap, err := configMap(in)
	if err != nil {
		t.Fatal(err)
	}
	return configMap.Data
}
