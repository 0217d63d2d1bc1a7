// Package kubetest starts a real API server for tests: only kube-apiserver and an etcd. Without controllers, pods are
// not created and dependents are not garbage-collected.
package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// Server is an API server with administrator access.
type Server struct {
	Config *rest.Config
	Client kubernetes.Interface
	// Objects is a client for objects of any kind.
	Objects dynamic.Interface
	// Etcd stores the API server's data.
	Etcd *Etcd

	program string
	args    []string
	log     string
	process *process
}

// Start starts an API server and its etcd, and returns once the API server is ready. QUORATE_KUBE_APISERVER is the path
// of the program, and QUORATE_ETCD_DIR is a directory that contains etcd-VERSION/etcd. If either is not set, the test
// is skipped. Both processes end with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	program, etcds := programs(t)
	return start(t, program, etcds)
}

// programs returns the path of kube-apiserver and the directory of etcd, or skips the test.
func programs(t *testing.T) (apiserver, etcds string) {
	t.Helper()
	apiserver, etcds = os.Getenv("QUORATE_KUBE_APISERVER"), os.Getenv("QUORATE_ETCD_DIR")
	if apiserver == "" || etcds == "" {
		t.Skip("QUORATE_KUBE_APISERVER or QUORATE_ETCD_DIR is not set")
	}
	return apiserver, etcds
}

func start(t owner, program, etcds string) *Server {
	t.Helper()
	dir := t.TempDir()
	etcd := startEtcd(t, etcds, dir)
	key := serviceAccountKey(t, dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(`secret,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := procgrouptest.Address()
	host, port, _ := net.SplitHostPort(address)
	s := connect(t, address)
	s.Etcd, s.program, s.log = etcd, program, filepath.Join(dir, "kube-apiserver.log")
	s.args = []string{
		"--etcd-servers=" + etcd.URL, "--bind-address=" + host, "--secure-port=" + port,
		"--cert-dir=" + dir,
		"--token-auth-file=" + tokens, "--service-account-issuer=https://test", "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/16",
		"--authorization-mode=RBAC",
	}
	s.run(t)
	return s
}

// Run starts the API server, initially or after it was killed, and returns once it is ready.
func (s *Server) Run(t *testing.T) {
	t.Helper()
	s.run(t)
}

func (s *Server) run(t owner) {
	t.Helper()
	command := exec.Command(s.program, s.args...)
	command.Args[0] = "kube-apiserver" // one file contains several programs, and the name selects one
	s.process = run(t, s.log, command)
	s.awaitReady(t)
}

// Kill kills the API server, because it takes half a minute to end watches on a regular shutdown.
func (s *Server) Kill() { s.process.kill() }

func connect(t owner, address string) *Server {
	t.Helper()
	config := &rest.Config{Host: "https://" + address, BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Config: config, Client: client, Objects: objects}
}

func (s *Server) awaitReady(t owner) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if _, err := s.Client.CoreV1().Namespaces().
			Get(context.Background(), "default", metav1.GetOptions{}); err == nil {
			return
		}
		select {
		case <-s.process.exited:
		case <-time.After(100 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(s.log)
		t.Fatalf("the API server is not ready:\n%s", text)
	}
}

func serviceAccountKey(t owner, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "service-account.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
