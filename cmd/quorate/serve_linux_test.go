package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
)

// TestConnectionFloodDoesNotBlockProbes checks that clients that open large numbers of connections occupy only a
// limited number at a time. Some connections are idle, and others send requests that never end. Probes get a response
// once the first connections have timed out.
func TestConnectionFloodDoesNotBlockProbes(t *testing.T) {
	server, err := listen("127.0.0.1:0", &reconcile.Reconciler{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var open, most atomic.Int64
	server.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			most.Store(max(most.Load(), open.Add(1))) // StateNew is reported for one connection at a time
		case http.StateClosed:
			open.Add(-1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	go func() { _ = server.serve() }()
	defer server.stop()
	ask := func(client int, request string) net.Conn {
		conn, err := dialerFrom(client).Dial("tcp", server.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request) // the connection may already be closed
		return conn
	}
	const whole = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
	for n := range 3 * mostConnected / 2 {
		ask(2+n%16, whole) // stays idle
		ask(2+n%16, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: ")
	}
	answer, err := http.ReadResponse(bufio.NewReader(ask(1, whole)), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable { // the loop has not started
		t.Errorf("%+v, %v", answer, err)
	}
	// The server reports a closed connection only after it may have accepted the next one.
	if n := most.Load(); n < mostConnected || n > 2*mostConnected {
		t.Errorf("%d connections were open at the same time, want about %d", n, mostConnected)
	}
}

// TestHostileClientDoesNotBlockProbes checks that a client that opens as many connections as it can, and reopens those
// that are closed, does not block probes from a different address. Each probe has a timeout of one second, the
// kubelet's default.
func TestHostileClientDoesNotBlockProbes(t *testing.T) {
	for _, test := range []struct {
		name        string
		connections int
		request     string // sent every second
	}{
		{"busy connections", mostConnected, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"requests that never end", mostConnected, "GET / HTTP/1.1\r\nHost: a\r\nX-A: "},
		{"a burst of idle connections", 1500, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, err := listen("127.0.0.1:0", &reconcile.Reconciler{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.serve() }()
			t.Cleanup(func() { _ = server.http.Close() })
			address := server.listener.Addr().String()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range test.connections {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				go keepConnected(ctx, conn, test.request)
			}
			for range 5 {
				if err := probeFrom(2, address); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// keepConnected sends the request every second, and reconnects if the connection is closed.
func keepConnected(ctx context.Context, conn net.Conn, request string) {
	address := conn.RemoteAddr().String()
	for ctx.Err() == nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		go func() {
			for {
				if _, err := io.WriteString(conn, request); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		_, _ = io.Copy(io.Discard, conn) // until the connection is closed
		stop()
		_ = conn.Close()
		time.Sleep(time.Second / 2)
		next, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn = next
	}
	_ = conn.Close()
}

// dialerFrom returns a dialer that connects from the address of the client with the given number.
func dialerFrom(client int) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(client))}}
}

// probeFrom sends a probe from a client's address.
func probeFrom(client int, address string) error {
	transport := &http.Transport{DialContext: dialerFrom(client).DialContext, DisableKeepAlives: true}
	answer, err := (&http.Client{Timeout: time.Second, Transport: transport}).Get("http://" + address + "/healthz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable { // the loop has not started
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}
