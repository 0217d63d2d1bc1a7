package etcd_test

import (
	"cmp"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	grpcstatus "google.golang.org/grpc/status"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// TestChangesWorkWithFalselyInactivePeer checks changes while the leader considers a follower inactive although both of
// its streams are back. This happens if an earlier POST to the follower fails only after the streams are back. The
// leader then rejects additions and removals of members for as long as it leads (etcd issue 14523). Another voter can
// add the learner, and can remove a member once it leads.
func TestChangesWorkWithFalselyInactivePeer(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := newServers(t, binary, nil)
		var peers []*peerProxy
		var initial []string
		for i := range 3 {
			peers = append(peers, newPeerProxy(t, s.peerURL(i)))
			initial = append(initial, pod(i)+"="+peers[i].url)
		}
		start := func(i int) {
			s.startIn(i, s.dirs[pod(i)], "--initial-advertise-peer-urls="+peers[i].url,
				"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state=new")
		}
		for i := range 3 {
			s.dirs[pod(i)] = t.TempDir()
			start(i)
		}
		clients := newClients(t)
		members := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3)).Membership.Members
		slices.SortFunc(members, func(a, b decide.Member) int { return strings.Compare(a.Name, b.Name) })
		leader := slices.IndexFunc(members, func(m decide.Member) bool { return m.Leader })
		follower := (leader + 1) % 3

		peers[follower].hold()
		s.kill(pod(follower))
		peers[follower].untilPosted()
		start(follower)
		eventually(t, clients, s.cluster(3), "three responding members again", allAnswer(3))
		for _, p := range peers {
			p.untilStreams(2 * 2) // two from each of the other members
		}
		peers[follower].fail()

		var mu sync.Mutex
		asked := map[string]string{}
		proxied := s.proxied(t, 3, func(c call) ([]byte, error) {
			answer, err := c.passOn()
			mu.Lock()
			defer mu.Unlock()
			asked[c.method+" "+c.pod] = cmp.Or(grpcstatus.Convert(err).Message(), "done")
			return answer, err
		})
		clients = newClients(t) // without existing connections
		// A removal is requested only from the leader.
		third := members[(leader+2)%3]
		checkRefusedAsUnhealthy(t, clients.RemoveMember(t.Context(), proxied, third.ID))
		intime(t, "add a learner", func() error {
			_, err := clients.AddLearner(t.Context(), proxied, s.peerURL(3))
			return err
		})
		checkRefusedAsUnhealthy(t, clients.RemoveMember(t.Context(), proxied, third.ID))
		const refused = "etcdserver: unhealthy cluster"
		for call, want := range map[string]string{
			"MemberAdd " + pod(leader): refused, "MemberRemove " + pod(leader): refused,
			"MemberRemove " + pod(follower): "", "MemberRemove " + third.Name: "",
		} {
			if got := asked[call]; got != want {
				t.Errorf("%s: %q, want %q", call, got, want)
			}
		}
		// A new leader uses its own view of the connections.
		intime(t, "move leadership", func() error {
			return clients.MoveLeader(t.Context(), proxied, members[leader].ID, members[follower].ID)
		})
		intime(t, "remove a member", func() error { return clients.RemoveMember(t.Context(), proxied, third.ID) })
	})
}

func checkRefusedAsUnhealthy(t *testing.T, err error) {
	t.Helper()
	if _, is := errors.AsType[etcd.NotYet](err); !is || !strings.HasSuffix(err.Error(), ": unhealthy cluster") {
		t.Errorf("got %v", err)
	}
}

// peerProxy is a proxy for raft requests to a member.
type peerProxy struct {
	url    string
	t      *testing.T
	mu     sync.Mutex
	posts  func(http.ResponseWriter) // nil: requests are forwarded
	posted chan struct{}
	failed chan struct{}
	// streams is the number of open streams.
	streams atomic.Int32
}

// stream is the body of a raft stream.
type stream struct {
	io.ReadCloser
	closed func()
}

func (s *stream) Close() error {
	s.closed()
	return s.ReadCloser.Close()
}

func newPeerProxy(t *testing.T, peerURL string) *peerProxy {
	target, err := url.Parse(peerURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peerProxy{t: t, url: "http://" + listener.Addr().String(), posted: make(chan struct{}, 1), failed: make(chan struct{})}
	passOn := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusOK && strings.HasPrefix(r.Request.URL.Path, "/raft/stream/") {
				p.streams.Add(1)
				r.Body = &stream{r.Body, sync.OnceFunc(func() { p.streams.Add(-1) })}
			}
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		post := p.posts
		p.mu.Unlock()
		if post != nil && r.Method == http.MethodPost {
			post(w)
			return
		}
		passOn.ServeHTTP(w, r)
	}), ErrorLog: passOn.ErrorLog}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// hold delays POST requests without a response until fail is called.
func (p *peerProxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posts = func(w http.ResponseWriter) {
		select {
		case p.posted <- struct{}{}:
		default:
		}
		<-p.failed
		w.WriteHeader(http.StatusBadGateway)
	}
}

func (p *peerProxy) untilStreams(n int32) {
	for end := time.Now().Add(patience); p.streams.Load() < n; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%d streams, want %d", p.streams.Load(), n)
		}
	}
}

func (p *peerProxy) untilPosted() { <-p.posted }

func (p *peerProxy) fail() { close(p.failed) }
