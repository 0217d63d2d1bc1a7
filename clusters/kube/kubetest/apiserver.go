// Package kubetest starts a real API server for tests: kube-apiserver and an etcd, and nothing
// else. Nobody makes pods, and nobody collects what has lost its owner.
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
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/child"
)

// Server is an API server, and who may do everything there.
type Server struct {
	Config *rest.Config
	Client kubernetes.Interface
}

// Start starts an API server and its etcd, and returns once it is ready. QUORATE_KUBE_APISERVER
// names the program, and QUORATE_ETCD_DIR a directory with etcd-VERSION/etcd in it; the test is
// skipped without. Both end with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	program, etcds := os.Getenv("QUORATE_KUBE_APISERVER"), os.Getenv("QUORATE_ETCD_DIR")
	if program == "" || etcds == "" {
		t.Skip("QUORATE_KUBE_APISERVER or QUORATE_ETCD_DIR is not set")
	}
	dir := t.TempDir()
	clientURL := startEtcd(t, etcds, dir)
	key := serviceAccountKey(t, dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(`secret,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	process := exec.Command(program, "--etcd-servers="+clientURL, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+dir,
		"--token-auth-file="+tokens, "--service-account-issuer=https://test", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--service-cluster-ip-range=10.0.0.0/16",
		"--authorization-mode=RBAC")
	process.Args[0] = "kube-apiserver" // several programs in one file go by their names
	log := filepath.Join(dir, "kube-apiserver.log")
	exited := run(t, log, process)
	s := connect(t, address)
	s.awaitReady(t, exited, log)
	return s
}

func startEtcd(t *testing.T, etcds, dir string) (clientURL string) {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join(etcds, "etcd-*/etcd"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no etcd-VERSION/etcd in %s: %v", etcds, err)
	}
	clientURL, peerURL := "http://"+freeAddress(t), "http://"+freeAddress(t)
	run(t, filepath.Join(dir, "etcd.log"), exec.Command(slices.Max(programs), "--data-dir="+filepath.Join(dir, "etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL))
	return clientURL
}

func connect(t *testing.T, address string) *Server {
	t.Helper()
	config := &rest.Config{Host: "https://" + address, BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Config: config, Client: client}
}

func (s *Server) awaitReady(t *testing.T, exited <-chan struct{}, log string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if _, err := s.Client.CoreV1().Namespaces().
			Get(context.Background(), "default", metav1.GetOptions{}); err == nil {
			return
		}
		select {
		case <-exited:
		case <-time.After(100 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(log)
		t.Fatalf("the API server does not get ready:\n%s", text)
	}
}

// run starts a program, which ends with the test at the latest. The channel is closed when it ends.
func run(t *testing.T, logFile string, process *exec.Cmd) <-chan struct{} {
	t.Helper()
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = child.WithParent()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = process.Wait(); close(exited) }()
	t.Cleanup(func() { _ = process.Process.Kill(); <-exited })
	return exited
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func serviceAccountKey(t *testing.T, dir string) string {
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
