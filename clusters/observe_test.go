package clusters

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// recordIn is the ConfigMap of a cluster with that record.
func recordIn(namespace, cluster, record string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: objects.NamesOf(cluster).ConfigMap, Labels: objects.Labels(cluster)},
		Data:       map[string]string{objects.RecordKey: record},
	}
}

func TestDeclared(t *testing.T) {
	after := v1alpha1.Duration("1h30m")
	d := target{orphaned: "gone", renamedFrom: "ns/b", cluster: v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{
		Storage: v1alpha1.StorageSpec{Retention: v1alpha1.RetentionDelete}, ReplaceAfter: &after,
	}}}
	got := declared(d)
	if got.Retention != "Delete" || got.ReplaceAfter != 90*time.Minute || got.Orphaned != "gone" || got.RenamedFrom != "ns/b" {
		t.Errorf("got %+v", got)
	}
}

// A member is silent since passes have found it so while etcd named a leader; at first sight that
// is not known.
func TestRecallSilence(t *testing.T) {
	silent := v1alpha1.MemberStatus{ID: "2", Health: v1alpha1.MemberUnreachable, Since: metav1.NewTime(noon)}
	tests := []struct {
		name   string
		status v1alpha1.EtcdClusterStatus
		want   time.Time
	}{
		{name: "silent before", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{silent}}, want: noon},
		{name: "healthy before", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{{ID: "2", Health: v1alpha1.MemberHealthy, Since: metav1.NewTime(noon)}}}},
		{name: "another member", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{{ID: "3", Health: v1alpha1.MemberUnreachable, Since: metav1.NewTime(noon)}}}},
		{name: "nobody answered", status: v1alpha1.EtcdClusterStatus{Members: []v1alpha1.MemberStatus{silent}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{own: &clusterObjects{custom: &v1alpha1.EtcdCluster{Status: test.status}}}
			c.state.Membership.Members = []decide.Member{{ID: 1, Answers: true}, {ID: 2}}
			c.recallSilence()
			if members := c.state.Membership.Members; !members[0].SilentSince.IsZero() || !members[1].SilentSince.Equal(test.want) {
				t.Errorf("got %+v", members)
			}
		})
	}
}

// Whatever has the labels, only what Quorate makes is the cluster's.
func TestRemaining(t *testing.T) {
	three := int32(3)
	own := &clusterObjects{objects: map[string]metav1.Object{
		"StatefulSet/a":       &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}},
		"ConfigMap/a-members": &corev1.ConfigMap{},
		"ConfigMap/a-notes":   &corev1.ConfigMap{},
		"Secret/a-ca":         &corev1.Secret{},
	}}
	c := &cluster{own: own, names: objects.NamesOf("a")}
	c.target.cluster.Name = "a"
	if got, want := c.remaining(), []string{"ConfigMap a-members", "Secret a-ca", "StatefulSet a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.readTemplate()
	if got := c.state.Objects.RunsReplicas; got != 3 {
		t.Errorf("the StatefulSet runs %d replicas, want 3", got)
	}
}
