package kube_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/proxy"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"quorate.dev/quorate/clusters/kube"
)

const patience = 30 * time.Second

// apiServer forwards ports with the code of the API server and of the kubelet's streaming server. Its only pod,
// test/a-0, represents the loopback interface.
type apiServer struct {
	*httptest.Server
	kubelet *httptest.Server
	// upgraded holds the connections that carry streams, which httptest does not close.
	upgraded sync.Map
	// webSockets is whether the server tunnels SPDY through WebSockets, as API servers have done since 1.31.
	webSockets bool
}

func newAPIServer(t *testing.T, webSockets bool) *apiServer {
	s := &apiServer{webSockets: webSockets}
	s.kubelet = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		portforward.ServePortForward(w, r, loopback{}, "a-0", "", &portforward.V4Options{}, time.Minute, time.Minute, portforward.SupportedProtocols)
	}))
	s.Server = httptest.NewUnstartedServer(s)
	for _, server := range []*httptest.Server{s.kubelet, s.Server} {
		server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
			if state == http.StateHijacked {
				s.upgraded.Store(conn, nil)
			}
		}
		server.Start()
	}
	t.Cleanup(func() {
		s.breakConnections()
		s.Close()
		s.kubelet.Close()
	})
	return s
}

func (s *apiServer) breakConnections() {
	s.upgraded.Range(func(conn, _ any) bool {
		conn.(net.Conn).Close()
		return true
	})
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/namespaces/test/pods/a-0/portforward" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods not found","reason":"NotFound","code":404}`)
		return
	}
	location, _ := url.Parse(s.kubelet.URL)
	var handler http.Handler = proxy.NewUpgradeAwareHandler(location, nil, false, true, s)
	if s.webSockets && wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
		handler = apiproxy.NewTunnelingHandler(handler)
	}
	handler.ServeHTTP(w, r)
}

// Error is the proxy's message that the kubelet cannot be reached.
func (s *apiServer) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

func (s *apiServer) client(t *testing.T) *kube.Client {
	client, err := kube.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// loopback forwards ports like the container runtime, with the same messages.
type loopback struct{}

func (loopback) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside namespace: %w", port, err)
	}
	defer conn.Close()
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(conn, stream)
		conn.Close()
	})
	_, err = io.Copy(stream, conn)
	stream.Close()
	copying.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// echo starts an echo server and returns its port.
func echo(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func eachTransport(t *testing.T, test func(t *testing.T, s *apiServer)) {
	for _, webSockets := range []bool{true, false} {
		t.Run(fmt.Sprintf("websockets=%v", webSockets), func(t *testing.T) { test(t, newAPIServer(t, webSockets)) })
	}
}

func TestPortForward(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *apiServer) {
		client, port := s.client(t), echo(t)
		var forwards sync.WaitGroup
		for range 4 {
			forwards.Go(func() {
				conn, err := client.PortForward(t.Context(), "test", "a-0", port)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				checkEcho(t, conn)
			})
		}
		forwards.Wait()
		checkNoneRuns(t)
	})
}

// checkEcho sends a megabyte and compares it with the data that comes back.
func checkEcho(t *testing.T, conn net.Conn) {
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	go func() { _, _ = conn.Write(sent) }() // a failure causes missing bytes
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	received := make([]byte, len(sent))
	if n, err := io.ReadFull(conn, received); err != nil || !bytes.Equal(sent, received) {
		t.Errorf("%d of %d bytes came back: %v", n, len(sent), err)
	}
}

func TestPortForwardConnectionRefused(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *apiServer) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close() // the port is now closed
		start := time.Now()
		conn, err := s.client(t).PortForward(t.Context(), "test", "a-0", listener.Addr().(*net.TCPAddr).Port)
		if err == nil {
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > time.Second/2 {
			t.Errorf("a refusal took %s", took)
		}
	})
}

func TestPortForwardToMissingPod(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *apiServer) {
		_, err := s.client(t).PortForward(t.Context(), "test", "a-9", 2379)
		if err == nil || !strings.HasPrefix(err.Error(), "port-forward: ") || !strings.HasSuffix(err.Error(), "pods not found") {
			t.Errorf("got %v", err)
		}
	})
}

// TestPortForwardForbidden checks that a missing right is reported as ErrForbidden, because retrying does not help.
func TestPortForwardForbidden(t *testing.T) {
	words := `pods "a-0" is forbidden: User "ci" cannot create resource "pods/portforward" in API group "" in the namespace "test"`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":"Forbidden","code":403}`, words)
	}))
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.PortForward(t.Context(), "test", "a-0", 2379); !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v", err)
	}
}

func TestBrokenPortForwardEndsReads(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *apiServer) {
		conn, err := s.client(t).PortForward(t.Context(), "test", "a-0", echo(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nothing to read: %v", err)
		}
		_ = conn.SetReadDeadline(time.Time{})
		checkEcho(t, conn) // an expired deadline does not break the connection
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		s.breakConnections()
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the API server is gone: %v", err)
		}
		checkNoneRuns(t)
	})
}

func TestPortForwardTimesOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, but nothing responds
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := kube.New(&rest.Config{Host: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := client.PortForward(ctx, "test", "a-0", 2379); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %s", took)
	}
	listener.Close()
	checkNoneRuns(t)
}

func TestDirect(t *testing.T) {
	conn, err := kube.Direct(t.Context(), "127.0.0.1", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	checkEcho(t, conn)
}

// checkNoneRuns waits until no client goroutine of a port-forward is running.
func checkNoneRuns(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(text, "kube.(*forwarded)") && !strings.Contains(text, "kube.newForwarded") && !strings.Contains(text, "kube.(*Client).PortForward") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", text)
		}
	}
}
