package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

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
	return &server{listener: netutil.LimitListener(listener, mostConnected), http: http.Server{
		Handler: handler(r, metrics), ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Second, MaxHeaderBytes: 16 << 10,
	}}, nil
}

// mostConnected is the maximum number of simultaneous connections. Each may use 150 KB while it sends its request.
// Further connections wait in the kernel's queue, and so do probes. IdleTimeout and ReadHeaderTimeout are therefore
// short: a burst of idle or slow connections delays probes by seconds, and does not fail three in a row.
const mostConnected = 64

// handler answers probes with 200 or 503, and serves the metrics unless they are nil.
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
