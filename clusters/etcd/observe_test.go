package etcd_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// lookups counts the names that the test binary resolves.
var lookups atomic.Int64

func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		lookups.Add(1)
		return nil, fmt.Errorf("the test looked up a name")
	}}
	// The tests spend most of their time waiting for etcd.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// patience limits every wait. Tests normally need much less time.
const patience = 30 * time.Second

// eventually observes the cluster until the membership meets the condition.
func eventually(t testing.TB, clients *etcd.Clients, cluster etcd.Cluster, wanted string, is func(decide.Membership) bool) etcd.Answer {
	t.Helper()
	var answer etcd.Answer
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if answer = clients.Observe(t.Context(), cluster); is(answer.Membership) {
			return answer
		}
	}
	t.Fatalf("timed out waiting for %s: %s", wanted, print(answer))
	return answer
}

func print(answer etcd.Answer) string {
	text, _ := json.MarshalIndent(answer, "", "  ")
	return string(text)
}

// allAnswer reports whether the list is known, has the given length, and all its members have started and respond.
func allAnswer(size int) func(decide.Membership) bool {
	return func(m decide.Membership) bool {
		return m.Known && len(m.Members) == size && !slices.ContainsFunc(m.Members, func(m decide.Member) bool { return !m.Answers || !m.Started })
	}
}

// allAnswerBut reports whether the list is known, there is a leader, and all members except the named one respond.
func allAnswerBut(t testing.TB, name string) func(decide.Membership) bool {
	return func(m decide.Membership) bool {
		return m.Known && !byName(t, m, name).Answers && slices.ContainsFunc(m.Members, func(m decide.Member) bool { return m.Leader }) &&
			!slices.ContainsFunc(m.Members, func(m decide.Member) bool { return m.Name != name && !m.Answers })
	}
}

func byName(t testing.TB, m decide.Membership, name string) decide.Member {
	t.Helper()
	for _, member := range m.Members {
		if member.Name == name {
			return member
		}
	}
	t.Fatalf("%s is not in %+v", name, m.Members)
	return decide.Member{}
}

func newClients(t testing.TB) *etcd.Clients {
	c := &etcd.Clients{}
	t.Cleanup(c.Close)
	return c
}

func TestObserveHealthyCluster(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("tls=%v", tls), func(t *testing.T) {
				var ca *ca
				if tls {
					ca = newCA(t, "*."+name+"."+namespace+".svc")
				}
				s := form(t, binary, ca, 3)
				clients := newClients(t)
				answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
				checkHealthy(t, s, answer, strings.TrimPrefix(filepath.Base(filepath.Dir(binary)), "etcd-"))
			})
		}
	})
}

func checkHealthy(t *testing.T, s *servers, answer etcd.Answer, version string) {
	leaders := 0
	for i := range 3 {
		m := byName(t, answer.Membership, pod(i))
		if m.ID == 0 || m.Version != version || m.PeerURL != s.peerURL(i) || m.Revision != 1 || m.RaftIndex == 0 || m.Applied == 0 || m.Disagrees != "" ||
			m.DBSize == 0 || m.DBSizeInUse == 0 || m.Learner || m.Why != "" || len(m.Alarms) > 0 {
			t.Errorf("%s: %+v", pod(i), m)
		}
		if m.Leader {
			leaders++
		}
		if id := answer.ClusterIDs[pod(i)]; id == 0 || id != answer.Membership.ClusterID {
			t.Errorf("%s reports the cluster ID %s, the list %s", pod(i), id, answer.Membership.ClusterID)
		}
	}
	if leaders != 1 || answer.Membership.Why != "" {
		t.Errorf("%d leaders: %s", leaders, print(answer))
	}
	if n := lookups.Load(); n > 0 {
		t.Errorf("%d names were looked up", n)
	}
}

// TestTwoClustersAreDistinguished puts the members of two clusters behind the names of one cluster.
func TestTwoClustersAreDistinguished(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := newServers(t, binary, nil)
		for i := range 2 {
			s.start(i, "new", pod(i)+"="+s.peerURL(i))
		}
		clients := newClients(t)
		var answer etcd.Answer
		eventually(t, clients, s.cluster(2), "a response from both clusters", func(m decide.Membership) bool {
			answer = clients.Observe(t.Context(), s.cluster(2))
			return len(answer.ClusterIDs) == 2 && answer.Membership.Known
		})
		if answer.ClusterIDs[pod(0)] == answer.ClusterIDs[pod(1)] || len(answer.Membership.Members) != 1 {
			t.Errorf("two clusters of one: %s", print(answer))
		}
		if name := answer.Membership.Members[0].Name; answer.Membership.ClusterID != answer.ClusterIDs[name] {
			t.Errorf("the list is not from %s's cluster: %s", name, print(answer))
		}
	})
}

// TestObserveLearner adds a learner and starts it later.
func TestObserveLearner(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		clients := newClients(t)
		eventually(t, clients, s.cluster(1), "one responding member", allAnswer(1))
		added, err := etcdserverpb.NewClusterClient(s.raw(t, 0)).MemberAdd(t.Context(),
			&etcdserverpb.MemberAddRequest{PeerURLs: []string{s.peerURL(1)}, IsLearner: true})
		if err != nil {
			t.Fatal(err)
		}
		answer := clients.Observe(t.Context(), s.cluster(1))
		want := decide.Member{ID: decide.ID(added.Member.ID), PeerURL: s.peerURL(1), Learner: true, Why: "it has no running pod"}
		if m := byName(t, answer.Membership, ""); fmt.Sprint(m) != fmt.Sprint(want) {
			t.Errorf("got  %+v\nwant %+v", m, want)
		}

		s.start(1, "existing", pod(0)+"="+s.peerURL(0)+","+pod(1)+"="+s.peerURL(1))
		answer = eventually(t, clients, s.cluster(2), "two responding members", allAnswer(2))
		if m := byName(t, answer.Membership, pod(1)); !m.Learner || m.ID != want.ID || m.Leader || m.Version == "" {
			t.Errorf("the learner: %+v", m)
		}

		// A learner on its own is alive, but cannot confirm a list.
		alone := s.cluster(2)
		alone.Pods = alone.Pods[1:]
		answer = clients.Observe(t.Context(), alone)
		if m := answer.Membership; m.Known || m.Why != "a-1: a learner" || answer.ClusterIDs[pod(1)] == 0 {
			t.Errorf("the learner alone: %s", print(answer))
		}
	})
}

func TestAlarmsAreReportedAndDisarmed(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		full := byName(t, answer.Membership, pod(1))
		s.raise(t, full.ID, etcdserverpb.AlarmType_NOSPACE)
		answer = clients.Observe(t.Context(), s.cluster(3))
		for i := range 3 {
			alarms := byName(t, answer.Membership, pod(i)).AlarmNames()
			if got := strings.Join(alarms, ","); got != map[string]string{pod(1): "NOSPACE"}[pod(i)] {
				t.Errorf("%s raises %q", pod(i), got)
			}
		}

		const stranger = decide.ID(0xabcd) // such as a removed member
		s.raise(t, stranger, etcdserverpb.AlarmType_CORRUPT)
		stale := decide.Alarm{ID: stranger, Kind: "CORRUPT"}
		answer = clients.Observe(t.Context(), s.cluster(3))
		if got := answer.Membership.StaleAlarms; len(got) != 1 || got[0] != stale {
			t.Errorf("stale alarms: %v", got)
		}
		for _, alarm := range []decide.Alarm{stale, {ID: full.ID, Kind: "NOSPACE"}} {
			twice(t, "disarm", func() error { return clients.DisarmAlarm(t.Context(), s.cluster(3), alarm) })
		}
		eventually(t, clients, s.cluster(3), "a membership without alarms", func(m decide.Membership) bool {
			return allAnswer(3)(m) && len(m.StaleAlarms) == 0 && len(byName(t, m, pod(1)).Alarms) == 0
		})
		const what = "disarm the FIRE alarm of member abcd"
		checkRefused(t, clients.DisarmAlarm(t.Context(), s.cluster(3), decide.Alarm{ID: stranger, Kind: "FIRE"}), what+": etcd does not have this kind of alarm")
	})
}

// raise makes etcd raise an alarm, as a member would on its own.
func (s *servers) raise(t *testing.T, id decide.ID, alarm etcdserverpb.AlarmType) {
	_, err := etcdserverpb.NewMaintenanceClient(s.raw(t, 0)).Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: uint64(id), Alarm: alarm,
	})
	if err != nil {
		t.Fatal(err)
	}
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "the alarm at every member", func(decide.Membership) bool {
		for i := range 3 {
			status, err := etcdserverpb.NewMaintenanceClient(s.raw(t, i)).Status(t.Context(), &etcdserverpb.StatusRequest{})
			if err != nil || !strings.Contains(strings.Join(status.Errors, " "), alarm.String()) {
				return false
			}
		}
		return true
	})
}

// raw returns a connection for requests that bypass the code under test.
func (s *servers) raw(t testing.TB, i int) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+s.address(i, 2379), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
