package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}}, nil
}

// handler answers probes, with 200 or 503, and has the metrics, if there are any.
func handler(r *reconcile.Reconciler, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", probe(r.Alive, "nothing has gone on for five minutes"))
	mux.Handle("GET /readyz", probe(r.Ready, "not all clusters have been looked at yet, or the API server "+
		"does not answer"))
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
