package objects

import "testing"

// TestMayBeRewritten checks that only listed fields may be rewritten.
func TestMayBeRewritten(t *testing.T) {
	tests := []struct {
		kind, path string
		want       bool
	}{
		{"StatefulSet", "spec.template.spec.containers[etcd].resources.limits.cpu", true},
		{"StatefulSet", "spec.template.spec.containers[etcd].resources", true},
		{"StatefulSet", "spec.template.spec.containers[etcd].resourcesX", false},
		{"StatefulSet", "spec.template.spec.containers.resources", false},
		{"StatefulSet", "spec.template.spec.containersX[etcd].resources", false},
		{"StatefulSet", "spec.template.spec.containers[etcd].image", false},
		{"StatefulSet", "spec.template.spec.containers[etcd].securityContext", false},
		{"StatefulSet", "spec.template.spec.securityContext.runAsNonRoot", false},
		{"StatefulSet", "spec.template.spec.nodeSelector.a", true},
		{"StatefulSet", "spec.template.spec.nodeSelectors", false},
		{"StatefulSet", "spec.template.spec.tolerations", true},
		{"StatefulSet", "spec.template.spec.newField", false},
		{"StatefulSet", "spec.template.metadata.annotations.a/b", true},
		{"StatefulSet", "spec.template.metadata.annotations.etcd.quorate.dev/spec-hash", false},
		{"StatefulSet", "spec.template.metadata.labels.app.kubernetes.io/managed-by", false},
		{"StatefulSet", "spec.template.metadata.labels", true},
		{"StatefulSet", "spec.replicas", false},
		{"StatefulSet", "spec.volumeClaimTemplates", false},
		{"StatefulSet", "metadata.annotations.a", true},
		{"StatefulSet", "metadata.labels.a", false},
		{"CronJob", "spec.jobTemplate.spec.template.spec.containers[backup].resources", true},
		{"CronJob", "spec.template.spec.tolerations", false},
		{"Service", "metadata.annotations.a", true},
		{"Service", "spec.ports[client].port", false},
		{"Secret", "data.tls.crt", false},
		{"EtcdCluster", "spec.replicas differs from the declaration", true},
	}
	for _, test := range tests {
		if got := MayBeRewritten(test.kind, test.path); got != test.want {
			t.Errorf("%s %s: got %t", test.kind, test.path, got)
		}
	}
}
