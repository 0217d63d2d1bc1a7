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

// server tells of a loop by HTTP.
type server struct {
	http     http.Server
	listener net.Listener
}

// listen listens at an address, so that an error of that ends a loop before it begins. The metrics are nil where
// there are none.
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

// mostConnected is how many connections there may be at once. Each may take 150 KB while its request comes.
const mostConnected = 64

// crowd keeps connections few: for each that is one too many, the oldest is closed. So whoever keeps many open holds up
// nobody who asks, as they would if no more were taken.
type crowd struct {
	mu sync.Mutex
	// connected are those that are open, the oldest first.
	connected []net.Conn
}

// note takes in what becomes of a connection; the server waits for that before it takes the next one.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.connected = append(c.connected, conn)
		if len(c.connected) > mostConnected {
			_ = c.connected[0].Close() // whoever serves it finds out
			c.connected = slices.Delete(c.connected, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		c.connected = slices.DeleteFunc(c.connected, func(other net.Conn) bool { return other == conn })
	case http.StateActive, http.StateIdle:
	}
}

// handler answers probes, with 200 or 503, and has the metrics, if there are any.
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

// serve answers until the server is stopped, which is no error.
func (s *server) serve() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve at %s: %w", s.listener.Addr(), err)
}

// stop lets those who are being answered have their answer.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // it is about to end
	}
}
