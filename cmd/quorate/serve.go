package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile"
)

// server serves the state of a loop over HTTP.
type server struct {
	http     http.Server
	listener net.Listener
}

// listen listens at an address, so that an error ends a loop before it begins. metrics may be nil.
func listen(address string, r *reconcile.Reconciler, metrics http.Handler) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usageError{fmt.Errorf("--listen %s: %w", address, err)}
	}
	return &server{listener: listener, http: http.Server{
		Handler: handler(r, metrics), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: (&crowd{}).note,
	}}, nil
}

// mostConnected is the maximum number of simultaneous connections. Each may use 150 KB while it sends its request.
const mostConnected = 64

// crowd limits the number of connections: each excess connection closes the oldest. Clients that hold many connections
// open therefore cannot block others, as they could if new connections were refused.
type crowd struct {
	mu sync.Mutex
	// connected holds the open connections, oldest first.
	connected []net.Conn
}

// note tracks the state of a connection; the server calls it before it accepts the next one.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.connected = append(c.connected, conn)
		if len(c.connected) > mostConnected {
			_ = c.connected[0].Close() // its handler notices
			c.connected = slices.Delete(c.connected, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		c.connected = slices.DeleteFunc(c.connected, func(other net.Conn) bool { return other == conn })
	case http.StateActive, http.StateIdle:
	}
}

// handler answers probes with 200 or 503, and serves the metrics unless they are nil.
func handler(r *reconcile.Reconciler, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", probe(r.Alive, "nothing has gone on for five minutes"))
	mux.Handle("GET /readyz", probe(r.Ready, "not all clusters have been looked at yet, or what there is "+
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

// serve serves until the server is stopped, which is not an error.
func (s *server) serve() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve at %s: %w", s.listener.Addr(), err)
}

// stop shuts the server down, and gives active requests time to finish.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // the process is about to end
	}
}
