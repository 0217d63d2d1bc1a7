package scenarios

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRestore measures the time from a commit that requests restoring a backup of 1 GiB to three healthy voters.
// It compares this with a manual restore that follows etcd's documentation: download, check, restore for each member,
// start.
func BenchmarkRestore(b *testing.B) {
	w := newWorld(b)
	s3 := w.serveS3Inside()
	allowed := w.backUpBig(s3)
	hand := w.restoreByHand(s3)
	w.recreateNamespace()

	w.createSecrets(s3)
	start := time.Now()
	w.declare(modern, three, "restore: {from: "+s3.destination()+"}")
	p := w.start(outside, append([]string{"run", "--until-converged", "--timeout", patience.String()}, allowed...)...)
	took := w.untilVoting(start)
	p.wait().requireCode(b, exitDone)
	figure("restore_to_three_voters", took.Seconds(), "s")
	figure("restore_to_three_voters_by_hand", hand.Seconds(), "s")
	figure("restore_to_three_voters_ratio", took.Seconds()/hand.Seconds(), "ratio")
}

// backUpBig creates and deletes a cluster, leaving a backup of 1 GiB and the snapshot that a manual backup would have
// stored. It returns the flags that a run requires.
func (w *world) backUpBig(s3 *s3Inside) (allowed []string) {
	w.t.Helper()
	w.loadImage()
	w.createSecrets(s3)
	allowed = s3.allowed()
	w.declare(modern, one, `backup: {schedule: "@yearly", to: `+s3.destination()+"}")
	w.convergeFrom(outside, allowed...)
	client, err := w.application(1)
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	fillEtcd(w.t, client)
	w.kubectl("--namespace", w.namespace, "create", "job", "--from=cronjob/a-backup", "big")
	if err := poll(w.t.Context(), 5*time.Minute, func() error { return w.succeeded("big") }); err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "snapshot.db")
	saveSnapshot(w.t, client, file)
	s3.upload(w.t, file)
	w.recreateNamespace()
	return allowed
}

func saveSnapshot(t testing.TB, client *clientv3.Client, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stream, err := client.Snapshot(t.Context())
	if err == nil {
		defer stream.Close()
		_, err = io.Copy(file, stream)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// restoreByHand returns how long a manual restore takes with direct access to the volumes of three members.
func (w *world) restoreByHand(s3 *s3Inside) time.Duration {
	w.t.Helper()
	w.apply(bareThree)
	w.untilVoting(time.Now())
	s := &script{world: w, t: w.t}
	s.scale(0)
	eventually(w.t, "etcd stops", func() error {
		pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d pods are left", len(pods.Items))
	})
	var dirs, peers []string
	for ordinal := range 3 {
		dir := w.bareDir(ordinal)
		if err := os.RemoveAll(dir); err != nil {
			w.t.Fatal(err)
		}
		dirs = append(dirs, dir)
		peers = append(peers, fmt.Sprintf("a-%d=http://a-%d.a:2380", ordinal, ordinal))
	}
	file := filepath.Join(w.t.TempDir(), "downloaded.db")
	etcdutl := filepath.Join(binary("tools"), "etcd-"+modern, "etcdutl")

	start := time.Now()
	s3.download(w.t, file)
	measured(w.t, nil, etcdutl, "snapshot", "status", file)
	for ordinal, dir := range dirs {
		_, peer, _ := strings.Cut(peers[ordinal], "=")
		measured(w.t, nil, etcdutl, "snapshot", "restore", file, "--data-dir", dir, "--name", fmt.Sprint("a-", ordinal),
			"--initial-cluster", strings.Join(peers, ","), "--initial-advertise-peer-urls", peer, "--initial-cluster-token", "restored",
			"--bump-revision=1000000000", "--mark-compacted")
		giveToEtcd(w.t, dir)
	}
	s.scale(3)
	return w.untilVoting(start)
}

// bareDir returns the data directory, on this machine, of a member of the bare StatefulSet.
func (w *world) bareDir(ordinal int) string {
	w.t.Helper()
	claim, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.ctx(), fmt.Sprint("data-a-", ordinal), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(w.kubeconfig), "node-*", "lib", "volumes", claim.Spec.VolumeName, "etcd"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the data of a-%d is in %q: %v", ordinal, found, err)
	}
	return found[0]
}

// giveToEtcd changes the owner of a directory to etcd's user.
func giveToEtcd(t testing.TB, dir string) {
	t.Helper()
	const etcd = 1000
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, etcd, etcd)
	})
	if err != nil {
		t.Fatal(err)
	}
}
