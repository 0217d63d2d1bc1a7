package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// tinyKeys writes a snapshot with n changes to keys without values. A tenth of the changes were made before a
// compaction that kept them. The others were made after the compaction, some of them to the same keys.
func tinyKeys(t *testing.T, path string, n int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	revision := func(i int) []byte {
		return append(binary.BigEndian.AppendUint64(nil, uint64(i+2)), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
	}
	const batch = 100_000
	for at := 0; at < n; at += batch {
		err = errors.Join(err, db.Update(func(tx *bolt.Tx) (err error) {
			for _, name := range []string{"key", "meta", "lease", "auth", "authUsers", "authRoles", "members", "members_removed", "cluster", "alarm"} {
				_, failed := tx.CreateBucketIfNotExists([]byte(name))
				err = errors.Join(err, failed)
			}
			keys, meta := tx.Bucket([]byte("key")), tx.Bucket([]byte("meta"))
			keys.FillPercent = 0.9
			for i := at; i < min(at+batch, n); i++ {
				kv := &mvccpb.KeyValue{Key: fmt.Appendf(nil, "%x", i), CreateRevision: int64(i + 2), ModRevision: int64(i + 2), Version: 1}
				if before := i / 20; i >= n/10 && i%20 == 0 {
					kv.Key, kv.CreateRevision, kv.Version = fmt.Appendf(nil, "%x", before), int64(before+2), 2
				}
				text, failed := proto.Marshal(kv)
				err = errors.Join(err, failed, keys.Put(revision(i), text))
			}
			return errors.Join(err, meta.Put([]byte("scheduledCompactRev"), revision(n/10-1)), meta.Put([]byte("finishedCompactRev"), revision(n/10-1)))
		}))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if err := os.WriteFile(path, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serving starts etcd and waits until it serves requests. How long etcd takes to load its keys is not tested.
func serving(t *testing.T, etcd *exec.Cmd, client *http.Client, url string) {
	t.Helper()
	startEtcd(t, etcd)
	waitForHealth(t, client, url, 10*time.Minute)
}

// waitForHealth waits until etcd serves requests.
func waitForHealth(t *testing.T, client *http.Client, url string, patience time.Duration) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		answer, err := client.Get(url + "/health")
		if err == nil {
			answer.Body.Close()
		}
		if err == nil && answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("etcd does not serve: %v", err)
		}
	}
}

// TestInspectingTinyKeysFitsInMemory checks that an application cannot prevent backups by writing many tiny keys: the
// memory required to inspect a database does not grow with the number of keys. The ratio corresponds to nine million
// keys in the 256 MiB of a backup container.
func TestInspectingTinyKeysFitsInMemory(t *testing.T) {
	g := newMemoryGroup(t, 44<<20)
	if g.dir == "" {
		t.Skip("a control group requires root and a writable /sys/fs/cgroup")
	}
	file := filepath.Join(t.TempDir(), "s.db")
	tinyKeys(t, file, 1_500_000)
	if code, out := g.quorate(t, "inspect-snapshot", file); code != exitOK || !strings.Contains(out, `"hashKV":`) {
		t.Errorf("exit code %d: %.1000s", code, out)
	}
}

// TestBackupAndRestoreOfTinyKeysFitInMemory backs up tiny keys, and verifies, restores and drills the backup, with
// little memory. With QUORATE_TINY_KEYS=9000000, it uses the memory of a backup container and a database of 525 MiB.
// etcd then needs 4 GiB, and the test takes several minutes.
func TestBackupAndRestoreOfTinyKeysFitInMemory(t *testing.T) {
	keys, memory := 300_000, int64(64<<20)
	if text := os.Getenv("QUORATE_TINY_KEYS"); text != "" {
		keys, _ = strconv.Atoi(text)
		memory = 256 << 20
	}
	programs := etcdPrograms(t)
	etcd := programs[len(programs)-1]
	g := newMemoryGroup(t, memory)
	if g.dir == "" {
		t.Skip("a control group requires root and a writable /sys/fs/cgroup")
	}
	g = g.named(t, "quorate")
	dir := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, name := range []string{"store", "spool", "drill", "restored"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tinyKeys(t, path("s.db"), keys)
	peer, client := "http://"+procgrouptest.Address(), "http://"+procgrouptest.Address()
	if err := snapshot.Restore(path("s.db"), snapshot.Restoration{DataDir: path("data"), Name: "a-0", PeerURL: peer, InitialCluster: "a-0=" + peer, Token: "t"}); err != nil {
		t.Fatal(err)
	}
	serving(t, exec.Command(etcd, "--name=a-0", "--data-dir="+path("data"), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--log-level=warn", "--log-outputs=stderr"), http.DefaultClient, client)
	from, version := "--from=file://"+path("store"), strings.TrimPrefix(filepath.Base(filepath.Dir(etcd)), "etcd-")
	step := func(args ...string) {
		started := time.Now()
		code, out := g.quorate(t, args...)
		if code != exitOK {
			t.Fatalf("%s: exit code %d\n%.2000s", args, code, out)
		}
		t.Logf("%s: %.1f s", args[:3], time.Since(started).Seconds())
	}
	step("backup", "ns/a", "--member=a-0="+client, "--to=file://"+path("store"), "--spool="+path("spool"), "--result="+path("result"))
	step("backups", "verify", "ns/a", from, "--spool="+path("spool"), "--result="+path("result"))
	step("restore", "ns/a", from, "--data-dir="+path("restored", "data"), "--name=a-0", "--peer-url="+peer, "--initial-cluster-token=new", "--once",
		"--etcd-version="+version, "--quota=8589934592", "--result="+path("restored.json"))
	step("backups", "drill", "ns/a", "--prepare", from, "--dir="+path("drill"), "--etcd-version="+version)
	drilled := exec.Command(etcd, "--config-file=etcd.yaml")
	drilled.Dir = path("drill")
	startEtcd(t, drilled)
	step("backups", "drill", "ns/a", "--prepared", from, "--dir="+path("drill"), "--etcd-version="+version, "--timeout=10m", "--result="+path("drilled.json"))
	provenTinyKeys(t, path("store"), keys)
}

// provenTinyKeys requires that the backup was compared with the member and with the etcd of the drill.
func provenTinyKeys(t *testing.T, dir string, keys int) {
	t.Helper()
	bucket, err := store.Location{Directory: dir}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listing, err := store.List(t.Context(), bucket, store.Cluster{Namespace: "ns", Name: "a"})
	newest, is := listing.Newest()
	if err != nil || !is || !newest.Verified || !newest.Drilled {
		t.Fatalf("%+v, %v", listing, err)
	}
	m, err := store.ReadManifest(t.Context(), bucket, newest)
	if err != nil || len(m.Snapshot.ProvenBy) != 1 || m.Snapshot.Unproven != "" || m.Snapshot.Changes != int64(keys) {
		text, _ := json.MarshalIndent(m, "", "  ")
		t.Errorf("%v: %s", err, text)
	}
}
