//go:build linux

package machine

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
)

func TestConditions(t *testing.T) {
	serving := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer serving.Close()
	address := serving.Listener.Addr().String()
	socket := filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()

	s := newSupervisor([]Process{{Name: "finished"}, {Name: "running"}})
	s.status[0].Done = true
	for condition, want := range map[string]bool{
		"tcp://" + address:               true,
		"tcp://" + free.Addr().String():  false,
		"unix://" + socket:               true,
		"unix://" + socket + ".absent":   false,
		"https://" + address + "/ready":  true,
		"https://" + address + "/denied": false,
		"done:///finished":               true,
		"done:///running":                false,
		"done:///unknown":                false,
	} {
		if got := s.holds(condition); got != want {
			t.Errorf("%s holds: %t, want %t", condition, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	const exited1, killed = syscall.WaitStatus(1 << 8), syscall.WaitStatus(9)
	for status, want := range map[syscall.WaitStatus]string{exited1: "exit status 1", killed: "signal: killed"} {
		if got := describe(status, nil); got != want {
			t.Errorf("describe(%#x) = %q, want %q", int(status), got, want)
		}
	}
}
