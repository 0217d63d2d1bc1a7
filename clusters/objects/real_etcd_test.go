package objects

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/procgroup"
	"quorate.dev/quorate/reconcile/decide"
)

// etcdToTest returns the etcd programs by version, or only the version QUORATE_ETCD_VERSION. It is for tests in which
// all versions must behave in the same way.
func etcdToTest(t *testing.T) map[string]string {
	binaries := etcdBinaries(t)
	if only := os.Getenv("QUORATE_ETCD_VERSION"); only != "" {
		maps.DeleteFunc(binaries, func(version, _ string) bool { return version != only })
		if len(binaries) == 0 {
			t.Fatalf("no etcd-%s/etcd in %s", only, os.Getenv("QUORATE_ETCD_DIR"))
		}
	}
	return binaries
}

// etcdBinaries returns all etcd programs by version.
func etcdBinaries(t *testing.T) map[string]string {
	dir := os.Getenv("QUORATE_ETCD_DIR")
	if dir == "" {
		t.Skip("QUORATE_ETCD_DIR is not set")
	}
	if os.Getuid() != 0 {
		t.Skip("a mount namespace requires root")
	}
	files, err := filepath.Glob(filepath.Join(dir, "etcd-*/etcd"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no etcd-VERSION/etcd in %s: %v", dir, err)
	}
	binaries := map[string]string{}
	for _, file := range files {
		binaries[strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "etcd-")] = file
	}
	return binaries
}

// world is a cluster of real etcd processes.
type world struct {
	*testing.T
	dir, binary string
	network     string // the first three octets of the addresses
	in          Input
	members     map[int]*member
	// allowsAnyName specifies that members do not restrict the names of other members, as before 3.5.15.
	allowsAnyName bool
}

type member struct {
	process *exec.Cmd
	exited  chan struct{}
}

func newWorld(t *testing.T, c *v1alpha1.EtcdCluster, binary string) *world {
	w := &world{T: t, dir: t.TempDir(), binary: binary, members: map[int]*member{}}
	w.in = Input{Cluster: c, Record: record(3, decide.Founding), Certificates: certificates(t, c)}
	w.network = freeNetwork(t)
	hosts := "127.0.0.1 localhost\n"
	for n := range 5 {
		hosts += w.address(n) + " " + Host(c, n) + "\n"
	}
	w.write("hosts", []byte(hosts))
	w.writeCertificates()
	t.Cleanup(func() {
		for n := range w.members {
			w.stop(n)
		}
	})
	return w
}

var networks atomic.Int32

// freeNetwork returns the prefix of unused loopback addresses that no other world in this process uses.
func freeNetwork(t *testing.T) string {
	for range 200 {
		network := fmt.Sprintf("127.%d.%d", 1+os.Getpid()%250, 1+networks.Add(1)%250)
		listener, err := net.Listen("tcp", network+".1:2380")
		if err == nil {
			listener.Close()
			return network
		}
	}
	t.Fatal("no free loopback addresses")
	return ""
}

func (w *world) address(n int) string { return fmt.Sprintf("%s.%d", w.network, n+1) }

func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.dir}, elements...)...)
}

func (w *world) write(name string, data []byte) {
	w.Helper()
	file := w.path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.Fatal(err)
	}
}

// writeCertificates writes the certificates and keys to files, as in the Secret volumes of a pod.
func (w *world) writeCertificates() {
	if !secure(w.in.Cluster) {
		return
	}
	k := w.in.Certificates
	for name, data := range map[string][]byte{
		"peer/ca.crt": k.Trusted(), "peer/tls.crt": k.Peer.Certificate, "peer/tls.key": k.Peer.Key,
		"peer/client.crt": k.PeerClient.Certificate, "peer/client.key": k.PeerClient.Key,
		"server/ca.crt": k.Trusted(), "server/tls.crt": k.Server.Certificate, "server/tls.key": k.Server.Key,
	} {
		w.write("tls/"+name, data)
	}
}

// start runs a member with its file from the ConfigMap, after replacing paths and addresses for the test.
func (w *world) start(n int) *member {
	w.Helper()
	name := PodName("a", n)
	text := strings.NewReplacer(
		"0.0.0.0", w.address(n),
		dataDir, w.path(name, "data"),
		"/etc/etcd/tls", w.path("tls"),
	).Replace(fileOf(w.T, w.in, n)) + "unsafe-no-fsync: true\n"
	if w.allowsAnyName {
		text = strings.ReplaceAll(text, "  allowed-cn:\n  - a-peer\n", "")
	}
	w.write(name+".yaml", []byte(text))
	log, err := os.Create(w.path(name + ".log"))
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	m := &member{exited: make(chan struct{})}
	m.process = exec.Command("unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/hosts && exec "$2" --config-file="$3"`,
		"sh", w.path("hosts"), w.binary, w.path(name+".yaml"))
	m.process.Stdout, m.process.Stderr = log, log
	m.process.SysProcAttr = procgroup.WithParent()
	if err := m.process.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { _ = m.process.Wait(); close(m.exited) }()
	w.members[n] = m
	return m
}

func (w *world) stop(n int) {
	m := w.members[n]
	_ = m.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(20 * time.Second):
		_ = m.process.Process.Kill()
		<-m.exited
	}
	delete(w.members, n)
}

func (w *world) log(n int) string {
	text, err := os.ReadFile(w.path(PodName("a", n) + ".log"))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// startLog returns the options that a member logs when it starts.
func (w *world) startLog(n int) map[string]any {
	for line := range strings.Lines(w.log(n)) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == "starting an etcd server" {
			return entry
		}
	}
	w.Fatalf("no message about a start in\n%s", w.log(n))
	return nil
}

func (w *world) version() etcdversion.Version { return mustParse(w.T, w.in.Cluster.Spec.Version) }

// waitReady waits until the readiness and liveness probes of a member succeed.
func (w *world) waitReady(n int) {
	w.Helper()
	v := w.version()
	deadline := time.Now().Add(60 * time.Second)
	for _, path := range []string{readyPath(v), livePath(v)} {
		for !succeeds(fmt.Sprintf("http://%s:%d%s", w.address(n), MetricsPort, path)) {
			select {
			case <-w.members[n].exited:
				w.Fatalf("%s has exited:\n%s", PodName("a", n), w.log(n))
			case <-time.After(50 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				w.Fatalf("%s is not ready in time:\n%s", PodName("a", n), w.log(n))
			}
		}
	}
}

func succeeds(url string) bool {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// client returns an HTTP client that is configured like an application with the client Secret, but presents pair, or no
// certificate if pair is zero.
func (w *world) client(n int, pair pki.Pair) *http.Client {
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: Host(w.in.Cluster, n)}
	config.RootCAs.AppendCertsFromPEM(w.in.Certificates.Trusted())
	if !pair.IsZero() {
		certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		if err != nil {
			w.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(w.address(n), port))
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DialContext: dial, DisableKeepAlives: true}}
}

// call sends a request to a member's gateway, which forwards it to the member.
func (w *world) call(n int, path string, body map[string]any) map[string]any {
	w.Helper()
	answer, err := w.ask(n, path, body)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

func (w *world) ask(n int, path string, body map[string]any) (map[string]any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	response, err := w.client(n, w.in.Certificates.Client).Post(ClientURL(w.in.Cluster, n)+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", path, response.Status, answer)
	}
	var fields map[string]any
	return fields, json.Unmarshal(answer, &fields)
}
