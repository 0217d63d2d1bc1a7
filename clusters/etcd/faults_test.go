package etcd_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// TestObserveAfterMemberLoss kills the members one by one and observes the cluster.
func TestObserveAfterMemberLoss(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, newCA(t, "*."+name+"."+namespace+".svc"), 3)
		clients := newClients(t)
		eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))

		s.kill(pod(1))
		answer := eventually(t, clients, s.cluster(3), "a leader among two members", func(m decide.Membership) bool {
			return allAnswerBut(t, pod(1))(m) && byName(t, m, pod(1)).Why == "connection refused"
		})
		if lost := byName(t, answer.Membership, pod(1)); lost.Answers || lost.Leader || !lost.Started {
			t.Errorf("the killed member: %+v", lost)
		}

		s.kill(pod(0))
		answer = clients.Observe(t.Context(), s.cluster(3))
		if answer.Membership.Known {
			t.Errorf("the membership is known with one of three members: %s", print(answer))
		}
		answer = eventually(t, clients, s.cluster(3), "a membership without a leader", func(m decide.Membership) bool {
			return strings.Contains(m.Why, "no leader")
		})
		const why = "a-0, a-1: connection refused; a-2: no leader"
		if answer.Membership.Known || answer.Membership.Why != why || len(answer.Membership.Members) != 3 || len(answer.ClusterIDs) != 1 {
			t.Errorf("want %q and the view of a-2: %s", why, print(answer))
		}
		if last := byName(t, answer.Membership, pod(2)); last.Answers || last.Leader || last.Why != "no leader" || last.Version == "" {
			t.Errorf("the last member: %+v", last)
		}

		start := time.Now()
		clients.Observe(t.Context(), s.cluster(3))
		if took := time.Since(start); took > time.Second {
			t.Errorf("refused connections and a missing leader took %s to see", took)
		}

		s.kill(pod(2))
		answer = clients.Observe(t.Context(), s.cluster(3))
		if m := answer.Membership; m.Known || m.Why != "a-0, a-1, a-2: connection refused" || m.Members != nil || len(answer.ClusterIDs) > 0 {
			t.Errorf("no member is left: %s", print(answer))
		}
	})
}

// late is the reason shown for a member that has not responded within a quarter of its timeout after most other members
// have.
const late = "no response within 1s of the other members' responses"

// TestUnresponsiveMemberDoesNotDelayOthers checks that a member that accepts connections without responding is not
// given its full timeout once most other members have responded.
func TestUnresponsiveMemberDoesNotDelayOthers(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, newCA(t, "*."+name+"."+namespace+".svc"), 3)
		clients := newClients(t)
		answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		clients.Timeout = 4 * time.Second
		follower, leader := "", ""
		for _, m := range answer.Membership.Members {
			if m.Leader {
				leader = m.Name
			} else {
				follower = m.Name
			}
		}

		s.freeze(follower)
		s.checkSilent(t, clients, follower) // over the existing connection
		s.checkSilent(t, clients, follower) // over a new connection
		s.checkUnready(t, clients, follower)
		s.thaw(follower)
		eventually(t, clients, s.cluster(3), "three responding members again", allAnswer(3))

		s.freeze(leader)
		answer = eventually(t, clients, s.cluster(3), "a different leader", func(m decide.Membership) bool {
			return m.Known && slices.ContainsFunc(m.Members, func(m decide.Member) bool { return m.Leader && m.Name != leader })
		})
		if m := byName(t, answer.Membership, leader); m.Leader || m.Answers || m.Why != late {
			t.Errorf("the unresponsive leader: %+v", m)
		}
	})
}

func (s *servers) checkSilent(t *testing.T, clients *etcd.Clients, follower string) {
	t.Helper()
	start := time.Now()
	answer := clients.Observe(t.Context(), s.cluster(3))
	took := time.Since(start)
	for _, m := range answer.Membership.Members {
		if m.Answers != (m.Name != follower) || m.Answers == (m.Why == late) {
			t.Errorf("%s is not responding: %+v", follower, m)
		}
	}
	if !answer.Membership.Known || took < clients.Timeout/4 || took > clients.Timeout {
		t.Errorf("known: %v, took %s", answer.Membership.Known, took)
	}
}

// checkUnready checks that an unready, slow member delays an observation only occasionally, not each time.
func (s *servers) checkUnready(t *testing.T, clients *etcd.Clients, follower string) {
	t.Helper()
	cluster := s.cluster(3)
	for i := range cluster.Pods {
		cluster.Pods[i].Unready = cluster.Pods[i].Name == follower
	}
	const soon = "no response shortly after the other members responded"
	brief := 0
	for whole := 0; whole < 3; {
		start := time.Now()
		answer := clients.Observe(t.Context(), cluster)
		took := time.Since(start)
		m := byName(t, answer.Membership, follower)
		switch {
		case !answer.Membership.Known || m.Answers || m.Why != soon && !strings.HasPrefix(m.Why, "no response within 1s"):
			t.Fatalf("known: %v, %+v", answer.Membership.Known, m)
		case m.Why != soon && took < clients.Timeout/4:
			t.Errorf("%s took %s", m.Why, took)
		case m.Why != soon:
			whole++
		case took < clients.Timeout/8:
			brief++
		}
	}
	if brief < 3 {
		t.Errorf("only %d observations did not wait for the member", brief)
	}
}

// TestInitialMemberReportsNothingWithoutQuorum checks that an initial member does not report anything before the
// initial members have quorum. If a member reports anything about its cluster, the cluster has therefore formed.
func TestInitialMemberReportsNothingWithoutQuorum(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := newServers(t, binary, nil)
		s.start(0, "new", fmt.Sprintf("a-0=%s,a-1=%s,a-2=%s", s.peerURL(0), s.peerURL(1), s.peerURL(2)))
		clients := newClients(t)
		clients.Timeout = time.Second
		answer := eventually(t, clients, s.cluster(1), "a member that accepts connections", func(m decide.Membership) bool {
			return m.Why != "a-0: connection refused"
		})
		if m := answer.Membership; m.Known || m.Why != "a-0: no response within 1s" || m.Members != nil || len(answer.ClusterIDs) > 0 {
			t.Errorf("got %s", print(answer))
		}
	})
}

// TestUnresponsivePodsTimeOut checks the timeout for pods whose connections are accepted by the kernel but never
// served.
func TestUnresponsivePodsTimeOut(t *testing.T) {
	hole := blackHole(t)
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", hole)
	}
	for _, tls := range []*etcd.TLS{nil, newCA(t).client()} {
		clients := newClients(t)
		clients.Timeout = 100 * time.Millisecond
		start := time.Now()
		answer := clients.Observe(t.Context(), etcd.Cluster{
			Namespace: namespace, Name: name, Dial: dial, TLS: tls, Pods: []etcd.Pod{{Name: pod(0)}, {Name: pod(1)}, {Name: pod(2)}},
		})
		if took := time.Since(start); took < clients.Timeout || took > clients.Timeout+time.Second {
			t.Errorf("took %s", took)
		}
		if m := answer.Membership; m.Known || m.Why != "a-0, a-1, a-2: no response within 100ms" {
			t.Errorf("got %s", print(answer))
		}
	}
}

func TestObserveEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	clients := newClients(t)
	answer := clients.Observe(ctx, etcd.Cluster{Namespace: namespace, Name: name, Dial: dial, Pods: []etcd.Pod{{Name: pod(0)}}})
	if m := answer.Membership; m.Known || m.Why != "a-0: context canceled" {
		t.Errorf("got %s", print(answer))
	}
}

func TestObserveWithoutPods(t *testing.T) {
	answer := newClients(t).Observe(t.Context(), etcd.Cluster{Namespace: namespace, Name: name})
	if m := answer.Membership; m.Known || m.Why != "no pod is running" || m.Members != nil {
		t.Errorf("got %s", print(answer))
	}
}

// hangUp matches the errors that occur when etcd closes a connection. Which one occurs depends on timing, because TLS
// 1.3 verifies the client last.
const hangUp = "broken pipe|connection reset by peer|it closed the connection"

func TestInvalidCertificatesAreReported(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		ca := newCA(t, "a-0."+name+"."+namespace+".svc", "a-1.elsewhere.svc")
		s := form(t, binary, ca, 2)
		clients := newClients(t)
		eventually(t, clients, s.cluster(1), "an unconfirmed cluster", func(m decide.Membership) bool { return m.Unconfirmed })
		other := newCA(t).client()
		for _, test := range []struct {
			what string
			tls  *etcd.TLS
			why  string
		}{
			{"server certificate from a different CA", &etcd.TLS{CA: other.CA, Cert: ca.client().Cert, Key: ca.client().Key},
				"a-0: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
			{"client certificate from a different CA", &etcd.TLS{CA: ca.client().CA, Cert: other.Cert, Key: other.Key},
				"a-0: (remote error: tls: .*|" + hangUp + ")"},
			{"CA is not valid PEM", &etcd.TLS{CA: []byte("nonsense"), Cert: ca.client().Cert, Key: ca.client().Key}, "the CA does not contain a PEM certificate"},
			{"key does not match the certificate", &etcd.TLS{CA: ca.client().CA, Cert: ca.client().Cert, Key: other.Key}, "private key does not match"},
			{"plaintext client, TLS server", nil, "a-0: (" + hangUp + ")"},
		} {
			cluster := s.cluster(1)
			cluster.TLS = test.tls
			answer := clients.Observe(t.Context(), cluster)
			if m := answer.Membership; m.Known || !regexp.MustCompile(test.why).MatchString(m.Why) || m.Members != nil {
				t.Errorf("%s: %s", test.what, print(answer))
			}
		}
		answer := clients.Observe(t.Context(), s.cluster(2))
		if m := byName(t, answer.Membership, pod(1)); m.Answers || !strings.Contains(m.Why, "a-1.a.test.svc") {
			t.Errorf("a certificate for a different name: %s", print(answer))
		}
	})
}
