package etcd_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/etcd"
)

// TestConnectionsAreReusedAndClosed follows a client's connections through a cluster's lifetime.
func TestConnectionsAreReusedAndClosed(t *testing.T) {
	s := form(t, binaries(t)[0], newCA(t, "*."+name+"."+namespace+".svc"), 3)
	clients := &etcd.Clients{}
	defer clients.Close()
	eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	s.checkOpen(t, "after forming", 3)
	dialed := s.dialed.Load()
	for range 20 {
		clients.Observe(t.Context(), s.cluster(3))
	}
	if again := s.dialed.Load() - dialed; again > 0 {
		t.Errorf("dialed %d times for pods that were known", again)
	}

	successor := s.cluster(3)
	successor.Pods[1].UID = "its successor"
	clients.Observe(t.Context(), successor)
	s.checkOpen(t, "with a replaced pod", 4)
	clients.Age(50 * time.Second)
	clients.Observe(t.Context(), successor)
	clients.Age(50 * time.Second)
	clients.Observe(t.Context(), successor)
	s.checkOpen(t, "after the old connection was idle for a minute", 3)

	s.kill(pod(2))
	clients.Observe(t.Context(), successor)
	s.checkOpen(t, "after the death of a member", 2)
	clients.Close()
	s.checkOpen(t, "after Close", 0)
	checkNoneRuns(t)
}

// checkOpen waits until the wanted number of connections is open, because gRPC closes them asynchronously.
func (s *servers) checkOpen(t *testing.T, when string, want int64) {
	t.Helper()
	for end := time.Now().Add(patience); s.open.Load() != want; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s %d connections are open, want %d", when, s.open.Load(), want)
		}
	}
}

// checkNoneRuns waits until no goroutine serves a connection.
func checkNoneRuns(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(text, "google.golang.org/grpc") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", text)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	s := form(b, binaries(b)[0], newCA(b, "*."+name+"."+namespace+".svc"), 3)
	clients := newClients(b)
	eventually(b, clients, s.cluster(3), "three responding members", allAnswer(3))
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			clients.Observe(b.Context(), s.cluster(3))
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			clients.Close()
			clients.Observe(b.Context(), s.cluster(3))
		}
	})
	s.kill(pod(1))
	eventually(b, clients, s.cluster(3), "a leader among two members", allAnswerBut(b, pod(1)))
	b.Run("one refuses", func(b *testing.B) {
		for b.Loop() {
			clients.Observe(b.Context(), s.cluster(3))
		}
	})
}
