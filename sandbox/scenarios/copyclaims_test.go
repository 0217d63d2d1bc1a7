package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCopyOfClaims copies the data of a hand-written StatefulSet that was stopped while clients wrote to it. One
// member was stopped before the others. Every acknowledged write is in the copy, and the source's volumes are not changed.
func TestCopyOfClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadImage()
	w.apply(strings.NewReplacer("/data/etcd", "/data/data/default.etcd",
		"      securityContext: {runAsNonRoot", "      nodeSelector: {kubernetes.io/hostname: node-1}\n      securityContext: {runAsNonRoot").Replace(oldThree))
	id := w.requireOneCluster("old", 3)
	w.waitForClusterVersion("old-0")

	copied := func(claims string) {
		w.declare(modern, three, fmt.Sprintf("restore: {from: {claims: {clusterID: %q, %s}}}", id, claims))
	}
	allowed := []string{"--allow-backup-destination", "claim://data-old-*", "--backup-image", deployedImage}
	copied("names: [data-old-2]")
	run := w.start(outside, append([]string{"run", "--until-converged", "--timeout", (2 * patience).String()}, allowed...)...)
	eventually(t, "the claim is in use", func() error {
		if !strings.Contains(run.stderr.String(), "pod old-2 uses claim data-old-2") {
			return errors.New(run.stderr.String())
		}
		return nil
	})
	acknowledged := w.writeUntilStopped()
	was := w.claimFiles()
	if r := run.wait(); !strings.Contains(r.stdout, "belongs to user 1000 and has mode 0700, but this process runs as user 65532") {
		t.Errorf("the owner is not reported:\n%s", r)
	}
	copied("names: [data-old-2], runAsUser: 1000")
	if r := w.run(append([]string{"--until-converged", "--timeout", patience.String()}, allowed...)...); !strings.Contains(r.stdout, "this is the data of 1 of 3 voters, and 2 are required") {
		t.Errorf("a minority is accepted:\n%s", r)
	}
	copied("names: [data-old-2, data-old-0], runAsUser: 1000")
	w.converge(allowed...)
	if s := w.status("a"); s.Voters != "3/3" || strings.TrimLeft(s.ClusterID, "0") == strings.TrimLeft(id, "0") {
		t.Errorf("the copy has %s voters and the cluster ID %s; the source has %s", s.Voters, s.ClusterID, id)
	}
	answer, err := w.member("a", 2).Get(w.ctx(), "written/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, kv := range answer.Kvs {
		found[string(kv.Key)] = true
	}
	for _, key := range acknowledged {
		if !found[key] {
			t.Errorf("%s was acknowledged, but is missing", key)
		}
	}
	t.Logf("%d of %d keys were acknowledged", len(acknowledged), len(found))
	if now := w.claimFiles(); now != was {
		t.Errorf("the source's volumes have changed from\n%s\nto\n%s", was, now)
	}
}

// writeUntilStopped writes to all members of the StatefulSet old while it is scaled to two members and then to zero. It
// returns the acknowledged keys.
func (w *world) writeUntilStopped() (acknowledged []string) {
	w.t.Helper()
	var mutex sync.Mutex
	var writers sync.WaitGroup
	counts := [3]int{}
	running, stop := context.WithCancel(w.ctx())
	for ordinal := range counts {
		client := w.member("old", ordinal)
		writers.Go(func() {
			for n := 0; running.Err() == nil; n++ {
				key := fmt.Sprintf("written/%d-%06d", ordinal, n)
				ctx, cancel := context.WithTimeout(running, answerTimeout)
				_, err := client.Put(ctx, key, key)
				cancel()
				if err != nil {
					continue // its member has been stopped, or the leader has
				}
				mutex.Lock()
				acknowledged, counts[ordinal] = append(acknowledged, key), counts[ordinal]+1
				mutex.Unlock()
			}
		})
	}
	written := func(ordinal, least int) {
		w.t.Helper()
		eventually(w.t, "there are writes", func() error {
			mutex.Lock()
			defer mutex.Unlock()
			if counts[ordinal] < least {
				return fmt.Errorf("%d writes through old-%d", counts[ordinal], ordinal)
			}
			return nil
		})
	}
	written(0, 50)
	for _, replicas := range []int{2, 0} {
		w.kubectl("--namespace", w.namespace, "scale", "statefulset/old", fmt.Sprintf("--replicas=%d", replicas))
		eventually(w.t, "the pods are gone", func() error {
			pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{LabelSelector: "etcd=old"})
			if err != nil || len(pods.Items) == replicas {
				return err
			}
			return fmt.Errorf("%d pods", len(pods.Items))
		})
		if replicas == 2 {
			mutex.Lock()
			before := counts[0]
			mutex.Unlock()
			written(0, before+50)
		}
	}
	stop()
	writers.Wait()
	return acknowledged
}

// claimFiles describes all files on the volumes of the StatefulSet old, with their sizes, owners, modes and times.
func (w *world) claimFiles() string {
	w.t.Helper()
	var said strings.Builder
	for ordinal := range 3 {
		claim, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.ctx(), fmt.Sprint("data-old-", ordinal), metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(filepath.Dir(w.kubeconfig), "node-*", "lib", "volumes", claim.Spec.VolumeName))
		if err != nil || len(found) != 1 {
			w.t.Fatalf("the data of old-%d is in %q: %v", ordinal, found, err)
		}
		said.WriteString(describeFiles(w.t, found[0]))
	}
	return said.String()
}

func describeFiles(t testing.TB, dir string) string {
	t.Helper()
	var said strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&said, path, info.Size(), info.Mode(), owner.Uid, owner.Gid, info.ModTime().Format(time.RFC3339Nano))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said.String()
}
