package scenarios

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// bumped is the amount by which a restore raises the revision.
const bumped = 1_000_000_000

// TestBackup manually backs up a cluster to an S3 store and to a file while applications write to it, and starts etcd
// on the restored data. The data must contain all writes acknowledged up to the backup's revision, and nothing else.
func TestBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.converge()
	id := w.requireOneCluster("a", 3)
	w.fillApp("a")
	s3 := serveS3(t)

	history, load := w.watchWrites(3), w.writeLedger(3, 3)
	stored := s3.quorate(w, "backup", "a", "--to", s3.url).requireCode(t, exitDone)
	if !stored.says("the same data as ") {
		t.Errorf("it is not proven: %s", stored)
	}
	again := s3.quorate(w, "backup", "a", "--to", s3.url, "-o", "json").requireCode(t, exitDone)
	var manifest struct {
		ClusterID, Data string
		Snapshot        struct {
			Revision int64
			ProvenBy []string
		}
	}
	load.end()
	history.end()
	if err := json.Unmarshal([]byte(again.stdout), &manifest); err != nil || strings.TrimLeft(manifest.ClusterID, "0") != id || len(manifest.Snapshot.ProvenBy) < 2 {
		t.Errorf("%v: %s", err, again)
	}
	cluster := w.namespace + "/a"
	if listed := s3.quorate(w, "backups", "list", cluster, "--from", s3.url).requireCode(t, exitDone); strings.Count(listed.stdout, "  stored\n") != 2 {
		t.Errorf("%s", listed)
	}
	s3.quorate(w, "backups", "prune", cluster, "--from", s3.url, "--last=1", "--hourly=0", "--daily=0", "--weekly=0", "--min-age=0s").requireCode(t, exitBlocked)
	etcd := binary(filepath.Join("tools", "etcd-"+modern, "etcd"))
	s3.quorate(w, "backups", "drill", cluster, "--from", s3.url, "--etcd", etcd).requireCode(t, exitDone)
	s3.quorate(w, "backups", "prune", cluster, "--from", s3.url, "--last=1", "--hourly=0", "--daily=0", "--weekly=0", "--min-age=0s").requireCode(t, exitDone)
	if listed := s3.quorate(w, "backups", "list", cluster, "--from", s3.url).requireCode(t, exitDone); strings.Count(listed.stdout, cluster) != 1 || !listed.says("  drilled\n") {
		t.Errorf("%s", listed)
	}

	dir := filepath.Join(t.TempDir(), "restored")
	peer := "http://" + freeAddress()
	s3.quorate(w, "restore", cluster, "--from", s3.url, "--data-dir", dir, "--name", "r", "--peer-url", peer).requireCode(t, exitDone)
	restored := startEtcd(t, dir, "r", peer)
	requireRestored(t, restored, manifest.Snapshot.Revision)
	load.requireUntil(restored, manifest.Snapshot.Revision)

	// With authentication enabled, passes can still take backups, but other users cannot.
	w.enableAuth()
	file := filepath.Join(t.TempDir(), "a.db")
	if r := s3.quorate(w, "backup", "a", "--to", file).requireCode(t, exitDone); !r.says("the same data as ") {
		t.Errorf("it is not proven: %s", r)
	}
	s3.quorate(w, "backup", "a", "--to", s3.url).requireCode(t, exitDone)
	if r := s3.quorate(w, "backups", "drill", cluster, "--from", s3.url, "--etcd", etcd).requireCode(t, exitDone); !r.says("holds the data that was backed up") {
		t.Errorf("%s", r)
	}
	// Without quorum, the data of a cluster is not reliable.
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=1")
	w.waitForPods("a", 1)
	r := s3.quorate(w, "backup", "a", "--to", filepath.Join(t.TempDir(), "b.db")).requireCode(t, exitError)
	if !r.says("no quorum confirms the member list") {
		t.Errorf("%s", r)
	}
}

// requireRestored fails unless etcd has all acknowledged data, at a revision that no client has seen before.
func requireRestored(t *testing.T, c *clientv3.Client, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all, err := c.Get(ctx, "app/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Kvs) != 100 || all.Header.Revision != revision+bumped {
		t.Errorf("%d keys at revision %d, want 100 at %d", len(all.Kvs), all.Header.Revision, revision+bumped)
	}
	for _, kv := range all.Kvs {
		if want := strings.Repeat(strings.TrimPrefix(string(kv.Key), "app/"), 200); string(kv.Value) != want {
			t.Errorf("%s is %q", kv.Key, kv.Value)
		}
	}
	// Clients that watched the previous cluster must list again. Otherwise, they would silently miss changes.
	answer := <-c.Watch(ctx, "app/", clientv3.WithPrefix(), clientv3.WithRev(revision))
	if answer.CompactRevision == 0 {
		t.Errorf("a watch from before continues: %+v", answer)
	}
	if _, err := c.Put(ctx, "app/new", "x"); err != nil {
		t.Error(err)
	}
}

// startEtcd starts etcd on a data directory on this machine, and returns a client for it.
func startEtcd(t testing.TB, dir, name, peer string, flags ...string) *clientv3.Client {
	t.Helper()
	client := "http://" + freeAddress()
	command := exec.Command(binary(filepath.Join("tools", "etcd-"+modern, "etcd")), append(flags, "--name="+name, "--data-dir="+dir,
		"--listen-peer-urls="+peer, "--listen-client-urls="+client, "--advertise-client-urls="+client, "--log-level=error")...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// s3Server is an S3 store on this machine that has one bucket.
type s3Server struct {
	endpoint, url, ca string
	// dial connects to the store if it is not in this machine's network.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// serveS3 serves a directory over the S3 protocol, with TLS.
func serveS3(t testing.TB) s3Server {
	t.Helper()
	dir := t.TempDir()
	address := freeAddress()
	host, _, _ := net.SplitHostPort(address)
	cert, key := writePair(t, dir, selfSigned(t, net.ParseIP(host)))
	t.Cleanup(startS3(t, exec.Command(binary("s3"), s3Args(t, dir, cert, key, address)...)))
	eventually(t, "the S3 store answers", func() error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return s3Server{endpoint: "https://" + address, url: "s3://" + s3Bucket + "/etcd", ca: cert}
}

// s3Args creates the bucket in a directory, and returns the arguments of the program that serves it.
func s3Args(t testing.TB, dir, cert, key, address string) []string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "data", s3Bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"-cert", cert, "-key", key, dir, address}
}

// startS3 starts the S3 server and returns a function that stops it.
func startS3(t testing.TB, server *exec.Cmd) (stop func()) {
	t.Helper()
	server.Env = append(os.Environ(), s3Server{}.environment()...)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe() // when stdin is closed, the server exits, even if the test is killed
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = stdin.Close(); _ = server.Wait() }
}

// writePair writes a certificate and its key to files.
func writePair(t testing.TB, dir string, pair tls.Certificate) (cert, key string) {
	t.Helper()
	encoded, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// quorate runs a quorate command with the flags and credentials for using the store.
func (s s3Server) quorate(w *world, args ...string) result {
	w.t.Helper()
	if args[0] == "backup" {
		args[1] = w.namespace + "/" + args[1]
		args = append(args, "--kubeconfig", w.kubeconfig)
	}
	return offlineWith(w.t, s.environment(), s.flags(args...)...)
}

func (s s3Server) flags(args ...string) []string {
	return append(args, "--s3-endpoint", s.endpoint, "--s3-path-style", "--s3-ca-file", s.ca)
}

func (s s3Server) environment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s3User, "AWS_SECRET_ACCESS_KEY=" + s3Secret}
}

const s3User, s3Secret, s3Bucket = "writer", "not-a-secret", "backups"
