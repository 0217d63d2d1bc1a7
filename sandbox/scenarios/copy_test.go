package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestCopyOfStatefulSet copies the data of a hand-written StatefulSet, with password authentication and without TLS, to
// a new cluster, as described in docs/how-to/copy-a-cluster.md. The source keeps running, unchanged, so clients can return to it.
func TestCopyOfStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadImage()
	w.apply(oldThree)
	id := w.requireOneCluster("old", 3)
	revision := w.fillApp("old")
	w.waitForClusterVersion("old-0")
	w.member("old", 1).enablePassword("not-a-secret")
	w.createSecret("old-etcd", map[string][]byte{"username": []byte("root"), "password": []byte("not-a-secret\n")})
	volumes, pods := w.volumeUIDs("old"), map[string]types.UID{}
	for ordinal := range 3 {
		name := fmt.Sprint("old-", ordinal)
		pods[name] = w.pod(name).UID
	}

	w.declare(modern, three, w.copyOf("old", id, "http", "old-etcd"))
	w.convergeFrom(outside, w.allowsCopies()...)
	if s := w.status("a"); s.Voters != "3/3" || strings.TrimLeft(s.ClusterID, "0") == strings.TrimLeft(id, "0") {
		t.Errorf("the copy has %s voters and the cluster ID %s; the source has %s", s.Voters, s.ClusterID, id)
	}
	requireRestored(t, w.memberAs("a-quorate-tls", "a", 2).Client, revision)
	if got, err := w.member("a", 0).Client.Get(w.ctx(), "app/1"); err == nil {
		t.Errorf("authentication is off: anyone gets %s", got.Kvs)
	}
	if now := w.volumeUIDs("old"); !maps.Equal(now, volumes) {
		t.Errorf("the source's volumes changed from %v to %v", volumes, now)
	}
	for name, uid := range pods {
		if now := w.pod(name); now.UID != uid || now.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("%s of the source was restarted", name)
		}
	}
}

// TestCopyIsRepeatedWhileSourceChanges copies a Quorate-managed cluster with TLS to a cluster with a different
// name, while a client still writes to the source. The copy does not start until the client has stopped,
// and then contains every write.
func TestCopyIsRepeatedWhileSourceChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadImage()
	old := declaration("old", modern, three)
	w.repository.push(map[string]string{"old.yaml": old})
	w.converge()
	id := w.requireOneCluster("old", 3)
	w.fillApp("old")

	writing, stop := context.WithCancel(t.Context())
	var written int
	var failed error
	var writer sync.WaitGroup
	client := w.member("old", 0)
	writer.Go(func() {
		for ; writing.Err() == nil && failed == nil; written++ {
			_, failed = client.Put(t.Context(), "written", fmt.Sprint(written))
		}
	})
	t.Cleanup(func() { stop(); writer.Wait() })
	w.repository.push(map[string]string{"old.yaml": old, "a.yaml": declaration("a", modern, three, w.copyOf("old", id, "https", "old-client-tls"))})
	run := w.start(outside, append([]string{"run", "--until-converged", "--timeout", (2 * patience).String()}, w.allowsCopies()...)...)
	eventually(t, "the source has changed", func() error {
		if !strings.Contains(run.stderr.String(), "has changed since") {
			return errors.New(run.stderr.String())
		}
		return nil
	})
	if _, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), "a-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the copy started while the source was changing: %v", err)
	}
	stop()
	if writer.Wait(); failed != nil {
		t.Fatal(failed)
	}
	run.wait().requireCode(t, exitDone)
	revision, err := w.member("old", 1).revision()
	if err != nil {
		t.Fatal(err)
	}
	copied := w.member("a", 2)
	if got := copied.get("written"); got != fmt.Sprint(written-1) {
		t.Errorf("the last of %d writes is missing: %q", written, got)
	}
	requireRestored(t, copied.Client, revision)
}

// BenchmarkCopy measures how long it takes to copy a cluster with 1 GiB of data: from the commit that requests the copy
// until three voters are healthy.
func BenchmarkCopy(b *testing.B) {
	w := newWorld(b)
	w.loadImage()
	w.apply(oldThree)
	id := w.requireOneCluster("old", 3)
	w.waitForClusterVersion("old-0")
	fillEtcd(b, w.member("old", 0).Client)

	start := time.Now()
	w.declare(modern, three, "tls: {mode: Disabled}", w.copyOf("old", id, "http", ""))
	w.convergeFrom(outside, append(w.allowsCopies(), "--timeout", (3*patience).String())...)
	figure("copy_seconds_per_100mib", time.Since(start).Seconds()/benchDatabase*(100<<20), "s")
	w.requireOneCluster("a", 3)
}

// waitForClusterVersion waits until the members of the newly started cluster old have agreed on the cluster version.
// Until then, for about four seconds, the version is 3.0.
func (w *world) waitForClusterVersion(pod string) {
	w.t.Helper()
	security, err := w.clientTLS("old")
	if err != nil {
		w.t.Fatal(err)
	}
	scheme := "http"
	if security != nil {
		scheme, security.ServerName = "https", pod+".old"
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: security, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return w.dialPod(ctx, w.namespace, pod, port)
	}}}
	defer client.CloseIdleConnections()
	eventually(w.t, "the cluster has a version", func() error {
		answer, err := client.Get(fmt.Sprintf("%s://%s:%d/version", scheme, pod, clientPort))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var version struct{ Etcdcluster string }
		if err := json.NewDecoder(answer.Body).Decode(&version); err != nil {
			return err
		}
		if !strings.HasPrefix(modern, strings.TrimSuffix(version.Etcdcluster, ".0")+".") {
			return fmt.Errorf("version %q", version.Etcdcluster)
		}
		return nil
	})
}

// loadImage loads the image that backup and restore pods use.
func (w *world) loadImage() {
	w.t.Helper()
	if err := w.command("load", deployedImage+"="+binary("quorate")); err != nil {
		w.t.Fatal(err)
	}
}

// fillApp writes the keys that requireRestored expects, and returns the revision.
func (w *world) fillApp(cluster string) int64 {
	w.t.Helper()
	m := w.member(cluster, 1)
	for i := range 100 {
		m.put(fmt.Sprintf("app/%d", i), strings.Repeat(fmt.Sprint(i), 200))
	}
	revision, err := m.revision()
	if err != nil {
		w.t.Fatal(err)
	}
	return revision
}

// copyOf returns the fields of a declaration that copies a cluster with three members.
func (w *world) copyOf(cluster, id, scheme, secret string) string {
	var urls []string
	for ordinal := range 3 {
		urls = append(urls, fmt.Sprintf("%s://%s-%d.%[2]s.%[4]s.svc:2379", scheme, cluster, ordinal, w.namespace))
	}
	access := ""
	if secret != "" {
		access = ", secretName: " + secret
	}
	return fmt.Sprintf("restore: {from: {etcd: {clusterID: %q, endpoints: [%s]%s}}}", id, strings.Join(urls, ", "), access)
}

// allowsCopies returns the flags that allow copies of clusters in the namespace.
func (w *world) allowsCopies() []string {
	return []string{"--allow-backup-destination", "etcd://old-*.old." + w.namespace + ".svc:2379", "--backup-image", deployedImage}
}

func (w *world) createSecret(name string, data map[string][]byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	if data[corev1.TLSCertKey] != nil {
		secret.Type = corev1.SecretTypeTLS
	}
	if _, err := w.kube.CoreV1().Secrets(w.namespace).Create(w.ctx(), secret, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// enablePassword enables authentication with the user root and a password.
func (m *member) enablePassword(password string) {
	m.t.Helper()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := m.UserAdd(ctx, "root", password); return err },
		func(ctx context.Context) error { _, err := m.RoleAdd(ctx, "root"); return err },
		func(ctx context.Context) error { _, err := m.UserGrantRole(ctx, "root", "root"); return err },
		func(ctx context.Context) error { _, err := m.AuthEnable(ctx); return err },
	} {
		ctx, cancel := m.ctx()
		err := step(ctx)
		cancel()
		if err != nil {
			m.t.Fatal(err)
		}
	}
}
