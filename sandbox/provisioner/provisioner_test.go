package provisioner

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func claim(node string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", Annotations: map[string]string{selectedNode: node}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func TestLifeOfAVolume(t *testing.T) {
	ours, theirs := local{node: "node-1", dir: t.TempDir()}, local{node: "node-2", dir: t.TempDir()}
	theirs.dir = ours.dir // in their machines, all nodes use the same path
	if !ours.ShouldProvision(t.Context(), claim("node-1")) || theirs.ShouldProvision(t.Context(), claim("node-1")) {
		t.Error("a claim is not served by the node it is scheduled to, or by another")
	}
	if ours.ShouldProvision(t.Context(), &corev1.PersistentVolumeClaim{}) {
		t.Error("a claim is served before it is scheduled")
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	volume, state, err := ours.Provision(t.Context(), controller.ProvisionOptions{
		PVName: "pvc-1", PVC: claim("node-1"), StorageClass: &storagev1.StorageClass{ReclaimPolicy: &reclaim},
	})
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("provision: state %s, %v", state, err)
	}
	path := filepath.Join(ours.dir, "pvc-1")
	if volume.Spec.Local.Path != path || volume.Spec.Capacity.Storage().String() != "1Gi" {
		t.Errorf("volume is %+v", volume.Spec)
	}
	if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if theirs.ShouldDelete(t.Context(), volume) || !ours.ShouldDelete(t.Context(), volume) {
		t.Error("a volume is not deleted by the node that holds it, or by another")
	}
	if err := ours.Delete(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the directory still exists (%v)", err)
	}
	if err := ours.Delete(t.Context(), volume); err != nil {
		t.Errorf("deleting again: %v", err)
	}
}

// TestForeignPathIsNotDeleted checks that a volume is deleted only if Provision would choose its path, because the
// path comes from the API.
func TestForeignPathIsNotDeleted(t *testing.T) {
	ours := local{node: "node-1", dir: "/var/lib/volumes"}
	affinity := ours.volume(controller.ProvisionOptions{
		PVC: claim("node-1"), StorageClass: &storagev1.StorageClass{ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete)},
	}, "").Spec.NodeAffinity
	for path, want := range map[string]bool{
		"/var/lib/volumes/pvc-1": true, "/var/lib/volumes/pvc-2": false, "/var/lib/volumes/..": false, "/var/lib/volumes": false, "/etc": false, "/var/lib/volumes/../etcd": false, "/var/lib/volumes/a/b": false,
	} {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Spec: corev1.PersistentVolumeSpec{
			NodeAffinity:           affinity,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		}}
		if got := ours.ShouldDelete(t.Context(), volume); got != want {
			t.Errorf("ShouldDelete of %s = %t, want %t", path, got, want)
		}
	}
}
