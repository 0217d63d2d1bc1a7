package scenarios

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestCopyOfStatefulSet copies the data of a hand-written StatefulSet, with password authentication and without TLS, to
// a new cluster, similar to docs/how-to/copy-a-cluster.md. The source keeps running, unchanged, so clients can return to
// it.
func TestCopyOfStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.command("load", deployedImage+"="+binary("quorate")); err != nil {
		t.Fatal(err)
	}
	s3 := w.serveS3Inside()
	w.createSecrets(s3)
	w.apply(strings.NewReplacer("name: a}", "name: old}", "etcd: a}", "etcd: old}", "serviceName: a\n", "serviceName: old\n",
		"a-0", "old-0", "a-1", "old-1", "a-2", "old-2", ".a:", ".old:").Replace(bareThree))
	lost := w.requireOneCluster("old", 3)
	source := w.member("old", 1)
	for i := range 100 {
		source.put(fmt.Sprintf("app/%d", i), strings.Repeat(fmt.Sprint(i), 200))
	}
	revision, err := source.revision()
	if err != nil {
		t.Fatal(err)
	}
	source.enablePassword("not-a-secret")
	volumes := w.volumeUIDs("old")

	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("not-a-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	backUp := []string{"backup", w.namespace + "/old", "--to", s3.url, "--s3-region", "us-east-1", "--user", "root", "--password-file", password}
	pods := map[string]types.UID{}
	for ordinal := range 3 {
		name := fmt.Sprint("old-", ordinal)
		pod := w.pod(name)
		pods[name] = pod.UID
		backUp = append(backUp, "--member", name+"=http://"+pod.Status.PodIP+":2379")
	}
	if out := w.quorateInside(s3, backUp...); !strings.Contains(out, "the same data as ") {
		t.Errorf("the backup was not compared with the other members: %s", out)
	}

	w.declare(modern, three, "restore: {from: "+s3.destination()+", cluster: "+w.namespace+"/old}")
	w.convergeFrom(outside, s3.allowed()...)
	if s := w.status("a"); s.Voters != "3/3" || strings.TrimLeft(s.ClusterID, "0") == lost {
		t.Errorf("the copy has %s voters and the cluster ID %s; the source has %s", s.Voters, s.ClusterID, lost)
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
