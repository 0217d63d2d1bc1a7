package objects

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// apiServer is a real one, spoken to as its protocol is.
type apiServer struct {
	*testing.T
	url, accept string
	client      *http.Client
	decoder     runtime.Decoder
}

// apply applies an object and returns what has become of it.
func (s *apiServer) apply(path string, object any) runtime.Object {
	s.Helper()
	return s.call(http.MethodPatch, path+"?force=true&fieldManager="+manager, "application/apply-patch+yaml", object)
}

func (s *apiServer) call(method, path, contentType string, body any) runtime.Object {
	s.Helper()
	answer, status, err := s.send(method, path, contentType, body)
	if err != nil || status >= http.StatusMultipleChoices {
		s.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
	}
	object, _, err := s.decoder.Decode(answer, nil, nil)
	if err != nil {
		s.Fatal(err)
	}
	return object
}

func (s *apiServer) send(method, path, contentType string, body any) ([]byte, int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, 0, err
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Authorization", "Bearer secret")
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", s.accept)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return answer, response.StatusCode, err
}

// startAPIServer starts an API server and its etcd, and returns once it is ready.
func startAPIServer(t *testing.T) *apiServer {
	program := os.Getenv("QUORATE_KUBE_APISERVER")
	if program == "" {
		t.Skip("QUORATE_KUBE_APISERVER is not set")
	}
	dir := t.TempDir()
	etcd := slices.Max(slices.Collect(maps.Values(etcdBinaries(t))))
	clientURL, peerURL := "http://"+freeAddress(t), "http://"+freeAddress(t)
	run(t, filepath.Join(dir, "etcd.log"), exec.Command(etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL))
	key := serviceAccountKey(t, dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(`secret,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	process := exec.Command(program, "--etcd-servers="+clientURL, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+dir,
		"--token-auth-file="+tokens, "--service-account-issuer=https://test", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=RBAC")
	process.Args[0] = "kube-apiserver" // several programs in one file go by their names
	log := filepath.Join(dir, "kube-apiserver.log")
	exited := run(t, log, process)
	s := newAPIServer(t, address)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if _, status, err := s.send(http.MethodGet, "/api/v1/namespaces/default", runtime.ContentTypeJSON, nil); err == nil && status == http.StatusOK {
			return s
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

func newAPIServer(t *testing.T, address string) *apiServer {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return &apiServer{
		T: t, url: "https://" + address, accept: runtime.ContentTypeJSON,
		client:  &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer(),
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
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
