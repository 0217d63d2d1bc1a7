package etcd_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/etcd/etcdtest"
	"quorate.dev/quorate/internal/procgroup"
)

// etcdDir is the environment variable that names the directory that contains etcd-<version>/etcd.
const etcdDir = "QUORATE_ETCD_DIR"

// eachVersion runs the test with every available etcd version, or only with the version QUORATE_ETCD_VERSION.
func eachVersion(t *testing.T, test func(t *testing.T, binary string)) {
	found := binaries(t)
	if only := os.Getenv("QUORATE_ETCD_VERSION"); only != "" {
		found = slices.DeleteFunc(found, func(binary string) bool { return filepath.Base(filepath.Dir(binary)) != "etcd-"+only })
		if len(found) == 0 {
			t.Fatalf("%s does not contain etcd-%s/etcd", os.Getenv(etcdDir), only)
		}
	}
	withEach(t, found, test)
}

// withEach runs the test with each of the programs.
func withEach(t *testing.T, binaries []string, test func(t *testing.T, binary string)) {
	for _, binary := range binaries {
		t.Run(filepath.Base(filepath.Dir(binary)), func(t *testing.T) {
			t.Parallel()
			test(t, binary)
		})
	}
}

func binaries(t testing.TB) []string {
	dir := os.Getenv(etcdDir)
	if dir == "" {
		t.Skipf("%s does not name a directory with etcd-<version>/etcd; make test sets it", etcdDir)
	}
	found, err := filepath.Glob(filepath.Join(dir, "etcd-*", "etcd"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s=%s does not contain etcd-<version>/etcd (%v)", etcdDir, dir, err)
	}
	return found
}

// servers are real etcd processes behind pod names, each on its own loopback address.
type servers struct {
	t         testing.TB
	binary    string
	subnet    string
	tls       *ca // nil: without TLS
	processes map[string]*exec.Cmd
	dirs      map[string]string // data directories
	// dialed counts the connections that the client has made, and open counts the connections that are still open.
	dialed, open atomic.Int64
}

const namespace, name = "test", "a"

func newServers(t testing.TB, binary string, ca *ca) *servers {
	return &servers{
		t: t, binary: binary, tls: ca, processes: map[string]*exec.Cmd{}, dirs: map[string]string{}, subnet: etcdtest.Subnet(t),
	}
}

// form starts a cluster with the members a-0, a-1, ….
func form(t testing.TB, binary string, ca *ca, size int) *servers {
	s := newServers(t, binary, ca)
	var initial []string
	for i := range size {
		initial = append(initial, pod(i)+"="+s.peerURL(i))
	}
	for i := range size {
		s.start(i, "new", strings.Join(initial, ","))
	}
	return s
}

func pod(i int) string { return fmt.Sprintf("%s-%d", name, i) }

func (s *servers) address(i, port int) string { return fmt.Sprintf("%s.%d:%d", s.subnet, i+1, port) }

func (s *servers) peerURL(i int) string { return "http://" + s.address(i, 2380) }

func (s *servers) start(i int, state, initialCluster string) {
	dir := filepath.Join(s.t.TempDir(), pod(i))
	s.startIn(i, dir, "--initial-cluster="+initialCluster, "--initial-cluster-state="+state, "--initial-cluster-token="+s.subnet)
}

// startIn starts a member with a data directory, which may already exist.
func (s *servers) startIn(i int, dir string, initial ...string) {
	clientURL := "http://" + s.address(i, 2379)
	s.dirs[pod(i)] = dir
	args := append([]string{
		"--name=" + pod(i), "--data-dir=" + dir,
		"--listen-peer-urls=" + s.peerURL(i), "--initial-advertise-peer-urls=" + s.peerURL(i),
		"--unsafe-no-fsync", "--log-level=error", "--heartbeat-interval=50", "--election-timeout=500",
	}, initial...)
	if s.tls != nil {
		clientURL = strings.Replace(clientURL, "http", "https", 1)
		args = append(args, "--client-cert-auth", "--trusted-ca-file="+s.tls.file("ca.pem"),
			"--cert-file="+s.tls.file("server.pem"), "--key-file="+s.tls.file("server-key.pem"))
	}
	args = append(args, "--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL)
	cmd := exec.Command(s.binary, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = procgroup.WithParent()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.processes[pod(i)] = cmd
	s.t.Cleanup(func() {
		s.kill(pod(i))
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", pod(i), output.String())
		}
	})
}

func (s *servers) kill(pod string) {
	if cmd := s.processes[pod]; cmd.ProcessState == nil {
		_ = cmd.Process.Kill() // works even if frozen
		_ = cmd.Wait()
	}
}

// freeze suspends the process until thaw is called.
func (s *servers) freeze(pod string) {
	process := s.processes[pod].Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	// The signal takes a while to reach all threads.
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		s.t.Fatalf("%s does not stop: %v, status %#x", pod, err, status)
	}
}

func (s *servers) thaw(pod string) {
	if err := s.processes[pod].Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// cluster describes how to reach the first n members.
func (s *servers) cluster(n int) etcd.Cluster {
	c := etcd.Cluster{Namespace: namespace, Name: name, Dial: s.dial}
	for i := range n {
		c.Pods = append(c.Pods, etcd.Pod{Name: pod(i), UID: fmt.Sprint("uid-", i)})
	}
	if s.tls != nil {
		c.TLS = s.tls.client()
	}
	return c
}

func (s *servers) dial(ctx context.Context, pod string) (net.Conn, error) {
	var i int
	if _, err := fmt.Sscanf(pod, name+"-%d", &i); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address(i, 2379))
	if err != nil {
		return nil, err
	}
	s.dialed.Add(1)
	s.open.Add(1)
	return &counted{Conn: conn, open: &s.open}, nil
}

type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// blackHole returns the address of a listener that accepts connections but never responds.
func blackHole(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String() // the kernel accepts connections
}

// ca is a CA that has issued a certificate for the cluster's members and certificates for its clients.
type ca struct{ dir string }

func (a *ca) file(name string) string { return filepath.Join(a.dir, name) }

func (a *ca) client() *etcd.TLS { return a.named("client") }

// named returns the TLS data of a client with the named certificate.
func (a *ca) named(name string) *etcd.TLS {
	return &etcd.TLS{CA: a.read("ca.pem"), Cert: a.read(name + ".pem"), Key: a.read(name + "-key.pem")}
}

func (a *ca) read(name string) []byte {
	content, err := os.ReadFile(a.file(name))
	if err != nil {
		panic(err)
	}
	return content
}

// newCA creates a CA and issues a certificate for members with these host names, a client certificate, and a
// certificate for etcd's root user.
func newCA(t testing.TB, hosts ...string) *ca {
	a := &ca{dir: t.TempDir()}
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caKey := a.issue(t, "ca", ca, ca, nil)
	leaf := x509.Certificate{
		DNSNames: hosts, Subject: pkix.Name{CommonName: "leaf"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	server, client, root := leaf, leaf, leaf
	root.Subject.CommonName = "root"
	a.issue(t, "server", &server, ca, caKey)
	a.issue(t, "client", &client, ca, caKey)
	a.issue(t, "root", &root, ca, caKey)
	return a
}

func (a *ca) issue(t testing.TB, name string, cert, parent *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+"-key.pem", "PRIVATE KEY", keyDER)
	return key
}

func (a *ca) write(t testing.TB, name, kind string, der []byte) {
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
