package targets

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// volumesOf returns the StatefulSet of a cluster whose volumes have the given size.
func volumesOf(size string) *appsv1.StatefulSet {
	claim := corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}}}
}

// TestQuota checks that the default quota depends on the members' volumes, and that the default of an earlier
// definition is kept. Any other value in the custom resource was set without permission or is no longer declared.
func TestQuota(t *testing.T) {
	for _, test := range []struct {
		name, size, stated, live, made, want string
		claims                               []string
		runs                                 string // the quota with which the pods were created
	}{
		{name: "new cluster", size: "1Gi", want: "512Mi"},
		{name: "new cluster, large volume", size: "100Gi", want: "2Gi"},
		{name: "set in git", size: "1Gi", stated: "900Mi", live: "2Gi", made: "1Gi", want: "900Mi"},
		{name: "default from an earlier definition", size: "3Gi", live: "2Gi", made: "3Gi", want: "2Gi"},
		{name: "set manually", size: "3Gi", live: "1Gi", made: "3Gi", want: "1536Mi"},
		{name: "storage increased only in git", size: "8Gi", made: "1Gi", want: "512Mi"},
		{name: "storage increased in git, StatefulSet missing", size: "8Gi", claims: []string{"2Gi", "1Gi", "2Gi"}, want: "512Mi"},
		{name: "claims increased manually", size: "8Gi", made: "1Gi", claims: []string{"8Gi", "8Gi"}, want: "512Mi"},
		{name: "earlier default, custom resource missing", size: "3Gi", made: "3Gi", runs: "2Gi", want: "2Gi"},
		{name: "current default, custom resource missing", size: "3Gi", made: "3Gi", runs: "1536Mi", want: "1536Mi"},
		{name: "earlier default, custom resource without quota", size: "3Gi", live: "0", made: "3Gi", runs: "2Gi", want: "2Gi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := Target{}
			target.Cluster.Name = "a"
			target.Cluster.Spec.Storage.Size = resource.MustParse(test.size)
			own := &inventory.Cluster{Objects: map[string]metav1.Object{}}
			if test.stated != "" {
				target.Cluster.Spec.Etcd.Quota = resource.MustParse(test.stated)
			}
			if test.live != "" {
				own.Custom = &v1alpha1.EtcdCluster{}
				own.Custom.Spec.Etcd.Quota = resource.MustParse(test.live)
			}
			if test.made != "" {
				set := volumesOf(test.made)
				if test.runs != "" {
					made := target.Cluster.DeepCopy()
					made.Spec.Etcd.Quota = resource.MustParse(test.runs)
					template := objects.DeclaredTemplate(made)
					set.Spec.Template.Annotations = map[string]string{objects.AnnotationVersion: template.Version, objects.AnnotationSpecHash: template.SpecHash}
				}
				own.Objects["StatefulSet/"+objects.NamesOf("a").StatefulSet] = set
			}
			for _, size := range test.claims {
				claim := volumesOf(size).Spec.VolumeClaimTemplates[0]
				own.Claims = append(own.Claims, &claim)
			}
			if got := target.WithQuota(own).Cluster.Spec.Etcd.Quota; got.String() != test.want {
				t.Errorf("got %s, want %s", got.String(), test.want)
			}
		})
	}
}

// TestHugeClaimsAreComparedInTime checks that even huge claim sizes, which the API server accepts, can be compared
// quickly.
func TestHugeClaimsAreComparedInTime(t *testing.T) {
	own := &inventory.Cluster{}
	for _, size := range []string{"1e20000000", "8Gi", "1e20000000", "1e20000000", "1e20000000", "1e20000000"} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		own.Claims = append(own.Claims, claim)
	}
	begin := time.Now()
	if size := (Target{}).volumeSize(own); size.String() != "8Gi" {
		t.Errorf("the smallest volume gets a quota of %.20s", size.String())
	}
	if took := time.Since(begin); took > 2*time.Second { // each exact comparison takes seconds
		t.Errorf("WithQuota took %s", took)
	}
}
