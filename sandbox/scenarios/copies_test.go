package scenarios

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// testAllClaimsDeleted deletes the claims of all members while the members are serving. Each member is replaced once
// other members have the data on volumes that will be kept.
func testAllClaimsDeleted(t *testing.T, w *world) {
	id, volumes := w.requireOneCluster("a", 3), w.volumeUIDs("a")
	w.member("a", 0).put("claims", "deleted")
	history := w.watchWrites(3)
	w.kubectl("--namespace", w.namespace, "delete", "pvc", "--all", "--wait=false")
	if r := w.run(); r.cluster("a").Decision.Verdict == "Done" {
		t.Errorf("all volumes are being deleted:\n%s", r)
	}
	w.converge("--timeout", "180s").requireRule(t, "a", "Converged")
	history.end()
	w.requireReplacedVolumes(t, id, 3, volumes)
}

// testRecreatedClaim force-deletes a claim and recreates it while etcd is still running on the original volume. The new
// claim must not be recorded as the member's volume: the member is replaced before its pod is stopped.
func testRecreatedClaim(t *testing.T, w *world) {
	w.requireReplaced(t, "a-1", func() {
		claim, err := w.object(claims, "data-a-1")
		if err != nil {
			t.Fatal(err)
		}
		volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
		w.setReclaimPolicy("Retain", volume) // otherwise the provisioner would delete the data of the running pod
		t.Cleanup(func() { w.setReclaimPolicy("Delete", volume) })
		w.kubectl("--namespace", w.namespace, "delete", "pvc", "data-a-1", "--wait=false")
		w.kubectl("--namespace", w.namespace, "patch", "pvc", "data-a-1", "--patch", `{"metadata":{"finalizers":null}}`)
		// The annotation with the node is kept, so that the new claim gets a volume without a new pod.
		unstructured.RemoveNestedField(claim.Object, "spec", "volumeName")
		unstructured.RemoveNestedField(claim.Object, "metadata", "annotations", "pv.kubernetes.io/bind-completed")
		w.recreate(claims, claim)
		w.kubectl("--namespace", w.namespace, "wait", "pvc/data-a-1", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
	})
}

// setReclaimPolicy sets the reclaim policy of the given persistent volumes.
func (w *world) setReclaimPolicy(policy string, volumes ...string) {
	w.t.Helper()
	w.kubectl(append([]string{"patch", "pv", "--patch", fmt.Sprintf(`{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)}, volumes...)...)
}

// TestDeletedClaimOfOne deletes the claim of a single-member cluster while the member is serving.
func TestDeletedClaimOfOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, one)
	w.converge()
	id, volumes := w.requireOneCluster("a", 1), w.volumeUIDs("a")
	w.member("a", 0).put("claims", "deleted")
	w.kubectl("--namespace", w.namespace, "delete", "pvc", "--all", "--wait=false")
	w.converge().requireRule(t, "a", "Converged")
	w.requireReplacedVolumes(t, id, 1, volumes)
}

// requireReplacedVolumes fails the test unless the cluster is the same but has its data on different volumes.
func (w *world) requireReplacedVolumes(t *testing.T, id string, size int, volumes map[string]string) {
	t.Helper()
	if got := w.requireOneCluster("a", size); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if now := w.volumeUIDs("a"); changed(volumes, now) != size || len(now) != size {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	for ordinal := range size {
		if got := w.member("a", ordinal).get("claims"); got != "deleted" {
			t.Errorf("a-%d reads %q", ordinal, got)
		}
	}
}

// TestForcedNewCluster starts one member with --force-new-cluster, which keeps the cluster ID. The volumes of the other
// members must be kept until git confirms that they are not needed.
func TestForcedNewCluster(t *testing.T) {
	t.Parallel()
	w := runningCluster(t)
	id, volumes := w.requireOneCluster("a", 3), w.volumeUIDs("a")
	w.member("a", 0).put("forced", "yes")
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=0")
	w.waitForPods("a", 0)
	w.forceNewCluster(0)
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=1")
	w.waitForPods("a", 1)
	var r result
	for range 3 {
		r = w.run()
		r.requireCode(t, exitBlocked)
		r.requireRule(t, "a", "MembersMissing")
	}
	if now := w.volumeUIDs("a"); !maps.Equal(volumes, now) {
		t.Fatalf("volumes before %v, after %v", volumes, now)
	}
	w.confirmMembers(r, three)
	w.converge("--timeout", "120s").requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if got := w.member("a", 2).get("forced"); got != "yes" {
		t.Errorf("a-2 reads %q", got)
	}
}

// confirmMembers adds the annotation that a Block's message contains to the declaration in git. It confirms that the
// remaining members have all required data.
func (w *world) confirmMembers(blocked result, spec ...string) {
	w.t.Helper()
	annotation := regexp.MustCompile(`etcd\.quorate\.dev/confirm-members: "[^"]+"`).FindString(blocked.cluster("a").Decision.Message)
	if annotation == "" {
		w.t.Fatalf("the message does not contain the annotation:\n%s", blocked)
	}
	annotated := "name: a\n  annotations:\n    " + annotation
	w.repository.push(map[string]string{"a.yaml": strings.Replace(declaration("a", modern, spec...), "name: a", annotated, 1)})
}

// forceNewCluster starts etcd on a stopped member's data, as in a manual recovery. It stops etcd once the member is the
// only member and the leader.
func (w *world) forceNewCluster(ordinal int) {
	w.t.Helper()
	dir, err := w.dataDir(ordinal)
	if err != nil {
		w.t.Fatal(err)
	}
	owner, err := os.Stat(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	client, peer := "http://"+freeAddress(), "http://"+freeAddress()
	etcd := exec.Command(binary("tools/etcd-"+modern+"/etcd"), "--name", fmt.Sprint("a-", ordinal), "--data-dir", filepath.Dir(dir), "--force-new-cluster",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer)
	if err := etcd.Start(); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "it leads alone", func() error { return leadsAlone(w.ctx(), client) })
	_ = etcd.Process.Kill()
	_ = etcd.Wait()
	if err := chownLike(dir, owner); err != nil {
		w.t.Fatal(err)
	}
}

// chownLike changes the owner of a directory and its contents to the owner of the given file.
func chownLike(dir string, owner fs.FileInfo) error {
	stat := owner.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(stat.Uid), int(stat.Gid))
	})
}

// freeAddress returns HOST:PORT for a server that will be started later. The host is a random loopback address that is
// probably unused, and the port is not ephemeral.
func freeAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+mathrand.IntN(254), mathrand.IntN(256), 1+mathrand.IntN(254), 12379)
}

func leadsAlone(ctx context.Context, endpoint string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: time.Second, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err == nil && len(list.Members) != 1 {
		err = fmt.Errorf("%d members", len(list.Members))
	}
	return err
}

// TestRestoredAPIServer restores Kubernetes to its state before the cluster was scaled up, as if from a backup of its
// own etcd. The cluster's etcd then lists a member that has no pod, volume or record.
func TestRestoredAPIServer(t *testing.T) {
	t.Parallel()
	w := runningCluster(t)
	record, err := w.object(configMaps, "a-members")
	if err != nil {
		t.Fatal(err)
	}
	w.declare(modern, "replicas: 4")
	w.converge()
	id, members := w.requireOneCluster("a", 4), w.memberIDs("a")
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=3")
	w.waitForPods("a", 3)
	w.kubectl("--namespace", w.namespace, "delete", "pvc", "data-a-3")
	if err := w.objects.Resource(configMaps).Namespace(w.namespace).Delete(w.ctx(), "a-members", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.recreate(configMaps, record)
	w.converge("--timeout", "180s").requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 4); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if now := w.memberIDs("a"); changed(members, now) != 1 || now["a-3"] == members["a-3"] {
		t.Errorf("members before %v, after %v", members, now)
	}
}
