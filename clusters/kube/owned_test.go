package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOwnerOf checks that the manager that owns a field is found by the field's path.
func TestOwnerOf(t *testing.T) {
	fields := func(manager, subresource, text string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(text)}
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		fields(Manager, "", `{"f:spec":{"f:replicas":{}}}`),
		fields("scaler", "scale", `{"f:spec":{"f:replicas":{}}}`),
		fields("broken", "", `{"f:spec":`),
		fields("injector", "", `{"f:spec":{"f:containers":{".":{},"k:{\"name\":\"etcd\"}":{".":{},"f:image":{}}},"f:ports":{"k:{\"port\":1}":{"f:port":{}}}}}`),
		fields("policy", "", `{"f:metadata":{"f:annotations":{"f:a.b/c":{}},"f:labels":{}}}`),
	}}}
	for path, want := range map[string]string{
		"spec.replicas":                "",
		"spec.containers[etcd].image":  "injector",
		"spec.containers[other].image": "",
		"spec.containers[etcd].images": "",
		"spec.containers[etcd]":        "injector",
		"spec.ports[client].port":      "injector",
		"metadata.annotations.a.b/c":   "policy",
		"metadata.labels.x":            "policy",
		"]":                            "",
	} {
		if got := OwnerOf(set, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
