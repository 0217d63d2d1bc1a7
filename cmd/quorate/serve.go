package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"quorate.dev/quorate/reconcile"
)

// server serves the state of a loop over HTTP.
type server struct {
	http     http.Server
	listener net.Listener
}

// listen listens on an address. It is separate from serve, so that an error is returned before the loop starts. metrics
// may be nil.
func listen(address string, r *reconcile.Reconciler, metrics http.Handler) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usageError{fmt.Errorf("--listen %s: %w", address, err)}
	}
	s := &server{listener: netutil.LimitListener(newClientLimit(listener), mostConnected), http: http.Server{
		Handler: handler(r, metrics), ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
	}}
	s.http.SetKeepAlivesEnabled(false) // each connection ends after its first response
	return s, nil
}

const (
	// mostConnected is the maximum number of simultaneous connections. Each may use 150 KB while it sends its request.
	// Further connections, including probes, wait in the kernel's queue. If eight or more hostile clients use all
	// connections, probes are delayed, so ReadHeaderTimeout is short.
	mostConnected = 64
	// mostPerClient is the maximum number of simultaneous connections from one IP address. Further connections are
	// closed immediately instead of waiting, so that a client does not delay probes from a different address.
	mostPerClient = 8
)

// clientLimit is a listener that accepts at most mostPerClient simultaneous connections from one IP address.
type clientLimit struct {
	net.Listener
	mu   sync.Mutex
	open map[string]int // connections per IP address
}

func newClientLimit(l net.Listener) *clientLimit {
	return &clientLimit{Listener: l, open: map[string]int{}}
}

// Accept returns the next connection from a client that is within its limit, and closes connections above the limit.
func (l *clientLimit) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err == nil && l.admit(client) {
			return &clientConn{Conn: conn, release: sync.OnceFunc(func() { l.release(client) })}, nil
		}
		_ = conn.Close()
	}
}

// admit counts a new connection from a client, and reports whether it is within the limit.
func (l *clientLimit) admit(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[client] >= mostPerClient {
		return false
	}
	l.open[client]++
	return true
}

func (l *clientLimit) release(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[client]--; l.open[client] == 0 {
		delete(l.open, client)
	}
}

// clientConn is a connection that counts toward its client's limit until it is closed.
type clientConn struct {
	net.Conn
	release func()
}

// Close closes the connection. It may be called more than once.
func (c *clientConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// handler returns a handler that responds to probes with 200 or 503, and serves metrics unless metrics is nil.
func handler(r *reconcile.Reconciler, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", probe(r.Alive, "no progress for five minutes"))
	mux.Handle("GET /readyz", probe(r.Ready, "not all clusters have been processed yet, or the existing clusters "+
		"cannot be listed"))
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return mux
}

func probe(well func() bool, otherwise string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !well() {
			http.Error(w, otherwise, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// serve serves until the server is stopped, and does not return an error for that.
func (s *server) serve() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve at %s: %w", s.listener.Addr(), err)
}

// stop shuts down the server, giving active requests time to finish.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // the process is about to end
	}
}
