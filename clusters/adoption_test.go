package clusters

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// firstGuest is the ID of the first guest. The IDs of the others follow.
const firstGuest = 0x11

// host adds guests to the list, and returns the declared adoption of the cluster. The guests have replicas' names and
// advertise two peer URLs each.
func (f *fakeEtcd) host(guests int) decide.AdoptionOrder {
	order := decide.AdoptionOrder{ClusterID: fakeClusterID, PeerURL: peerOf(0)}
	for n := range guests {
		id := uint64(firstGuest + n)
		f.members = append(f.members, &listedMember{
			ID: id, Name: fmt.Sprint("a-", n), ClientURLs: []string{"http://x"},
			PeerURLs: []string{fmt.Sprintf("http://old-%d.old.default.svc:2380", n), fmt.Sprintf("http://10.0.0.%d:2380", n)},
		})
		f.serve(10+n, id, f.address(10+n))
		order.Endpoints = append(order.Endpoints, f.endpoint(10+n))
	}
	f.hashes = true
	return order
}

func (f *fakeEtcd) endpoint(ordinal int) string {
	return "http://" + net.JoinHostPort(f.address(ordinal), fmt.Sprint(objects.ClientPort))
}

// newAdoption returns a cluster of three guests, which no replica has joined yet.
func newAdoption(t *testing.T) *life {
	l := &life{T: t, etcd: newFakeEtcd(t, 0)}
	l.etcd.leader = firstGuest
	l.adopts = l.etcd.host(3)
	l.old = New(clientThatPanics(t), Options{Timeout: time.Second, LeaseDuration: time.Hour})
	t.Cleanup(l.old.etcd.Close)
	return l
}

// newHolding returns a cluster of three replicas and three guests.
func newHolding(t *testing.T) *life {
	l := newLife(t)
	l.adopts = l.etcd.host(3)
	l.record.Adopted, l.record.Guests = fakeClusterID, []decide.ID{firstGuest, firstGuest + 1, firstGuest + 2}
	return l
}

// server is an API server with the current claims, pods and record.
func (l *life) server() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		switch name := path.Base(r.URL.Path); {
		case name == "pods":
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
			for _, pod := range l.pods {
				list.Items = append(list.Items, *pod)
			}
			body = list
		case name == "a-members":
			record, err := objects.EncodeRecord(l.record)
			if err != nil {
				l.Error(err)
			}
			body = corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{objects.RecordKey: record}}
		default:
			body = l.claims[slices.IndexFunc(l.claims, func(claim *corev1.PersistentVolumeClaim) bool { return claim.Name == name })]
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	})
}

// TestSourceIsObserved checks the observed state of the cluster to adopt, and that a source that is silent, hangs or is
// not the declared cluster is not adopted.
func TestSourceIsObserved(t *testing.T) {
	for what, test := range map[string]struct {
		change func(l *life)
		rule   string
		says   string
	}{
		"source can be adopted":              {func(*life) {}, "Adopt", "adopting cluster c1: its 3 members become guests, and 3 replicas will join"},
		"endpoint is not responding":         {func(l *life) { l.adopts.Endpoints = []string{l.etcd.endpoint(20)} }, "Adopt", "does not return a member list"},
		"one member hangs":                   {func(l *life) { l.etcd.running[11].hangs.Store(true) }, "Adopt", "guest a-1 (12) is not responding"},
		"most members hang":                  {func(l *life) { l.etcd.running[10].hangs.Store(true); l.etcd.running[11].hangs.Store(true) }, "Adopt", "1 of 3 voters returned it"},
		"endpoint of a member is missing":    {func(l *life) { l.adopts.Endpoints = l.adopts.Endpoints[1:] }, "Adopt", "guest a-0 (11) is not responding (no responding endpoint in spec.adopt leads to it)"},
		"different cluster ID":               {func(l *life) { l.adopts.ClusterID = 0xc2 }, "Adopt", "belong to cluster c1, but spec.adopt names cluster c2"},
		"endpoint is listed twice":           {func(l *life) { l.adopts.Endpoints = append(l.adopts.Endpoints, l.adopts.Endpoints[0]) }, "Adopt", "adopting"},
		"endpoints of two clusters":          {func(l *life) { l.adopts.Endpoints = append(l.adopts.Endpoints, other(l)) }, "Adopt", "belong to several clusters: c1 and c2"},
		"without hash":                       {func(l *life) { l.etcd.hashes = false }, "Adopt", "did not return a hash of its data"},
		"replica without a volume is listed": {func(l *life) { l.etcd.add(peerOf(1)) }, "Adopt", "a replica of this cluster, which has no volume: remove member 9 with etcdctl member remove"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newAdoption(t)
			test.change(l)
			begun := time.Now()
			c := l.seen(l.old)
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
			d := decide.Decide(c.state)
			if d.Rule != test.rule || !strings.Contains(d.String(), test.says) && !strings.Contains(c.state.Source.Why, test.says) {
				t.Errorf("%s (%+v)", d, c.state.Source)
			}
			if asked := l.etcd.hashed.Load() > 0; asked != (d.Verdict == decide.Act || what == "without hash") {
				t.Errorf("members were asked for hashes: %t", asked)
			}
			if c.state.Membership.Known || c.state.Membership.ClusterID != 0 {
				t.Errorf("the source is mistaken for this cluster: %+v", c.state.Membership)
			}
		})
	}
}

// other starts a member of cluster c2 and returns its endpoint.
func other(l *life) string {
	stranger := &fakeEtcd{t: l.T, subnet: l.etcd.subnet, running: map[int]*fakeMember{}, clusterID: 0xc2}
	stranger.members = append(stranger.members, &listedMember{ID: 1, Name: "x", PeerURLs: []string{"http://x:2380"}})
	stranger.serve(0, 1, stranger.address(30))
	return stranger.endpoint(30)
}

// TestSourceIsQueriedOnlyBeforeAdoption checks that the source is not queried if anything is recorded, a replica
// exists, or the cluster should not run, and that the endpoints are not queried if no guests are left.
func TestSourceIsQueriedOnlyBeforeAdoption(t *testing.T) {
	l := newAdoption(t)
	l.adopts.Abandon = true
	if c := l.seen(l.old); c.state.Source.Known {
		t.Error("the source of an abandoned adoption is queried")
	}
	l = newHolding(t)
	if c := l.seen(l.old); c.state.Source.Known || len(c.asked()) != 6 {
		t.Errorf("%d asked", len(c.asked()))
	}
	l.record.Guests = nil
	if c := l.seen(l.old); c.state.Source.Known || len(c.asked()) != 3 {
		t.Errorf("without guests, %d asked", len(c.asked()))
	}
	l.record = decide.Record{}
	if c := l.seen(l.old); c.state.Source.Known || len(c.asked()) != 6 {
		t.Errorf("without a record, %d asked", len(c.asked()))
	}
	l.adopts = decide.AdoptionOrder{}
	if c := l.seen(l.old); len(c.asked()) != 3 {
		t.Errorf("without an adoption, %d asked", len(c.asked()))
	}
}

// TestHolding checks that replicas and guests are one cluster, that a guest with a replica's name is not mistaken for
// that replica, and that changes do not wait for guests' pods.
func TestHolding(t *testing.T) {
	l := newHolding(t)
	l.etcd.running[1].hangs.Store(true)
	c := l.same("with a replica not responding")
	m := c.state.Membership
	if !m.Known || decide.Answering(m.Members) != 5 || m.Members[1].Answers || !m.Members[4].Answers {
		t.Fatalf("%+v", m)
	}
	if c.runsIn(m.Members[4], "a-1") || !c.runsIn(m.Members[1], "a-1") {
		t.Error("a guest is mistaken for the replica with its name")
	}
	l.etcd.running[1].hangs.Store(false)
	c = l.same("with all replicas responding")
	c.live.kube = clientOf(t, l.server())
	if why, err := c.othersUnready(t.Context(), "a-1"); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
}

// TestGuestsAreKnownWithoutRecord checks that guests are recorded again if the record is lost.
func TestGuestsAreKnownWithoutRecord(t *testing.T) {
	l := newHolding(t)
	want := l.record.Guests
	l.record = decide.Record{}
	c := l.same("without a record")
	for range 3 { // the record, its seal, and the guests
		l.record = decide.RequiredRecord(c.state, "fresh")
		c = l.same("with a new record")
		if a, is := decide.Decide(c.state).Action.(decide.Seal); is {
			l.record = decide.SealedRecord(c.state, a, "fresh")
			c = l.same("with a sealed record")
		}
	}
	if r := l.record; !c.state.Membership.Known || r.Adopted != fakeClusterID || !slices.Equal(r.Guests, want) || len(r.Members) != 3 {
		t.Errorf("%+v from %+v; %s", r, c.state.Membership, decide.Decide(c.state))
	}
}

// TestSourceIsNotThisCluster checks that the members of the cluster to adopt do not become the members of a cluster that
// formed otherwise and lost its record.
func TestSourceIsNotThisCluster(t *testing.T) {
	l := newAdoption(t)
	l.claims = []*corev1.PersistentVolumeClaim{claimOf(0, "")}
	if m := l.same("with a leftover volume").state.Membership; m.Known || m.ClusterID != 0 || m.Why != "cluster c1 does not list a replica" {
		t.Errorf("%+v", m)
	}
	formed := newFakeEtcd(t, 3)
	formed.clusterID = 0xc3
	l.etcd.subnet, formed.subnet = formed.subnet, l.etcd.subnet
	l.pods = []*corev1.Pod{l.pod(0, ""), l.pod(1, ""), l.pod(2, "")}
	if m := l.same("with a different cluster in the pods").state.Membership; !m.Known || m.ClusterID != 0xc3 || len(m.Members) != 3 {
		t.Errorf("%+v", m)
	}
	for _, r := range []decide.Record{{Token: "t", ClusterID: 0xc3}, decide.FoundingRecord("t", 3)} {
		if l.record = r; len(l.seen(l.old).asked()) != 3 {
			t.Errorf("the source is asked although the record is %+v", r)
		}
	}
}

// TestVanishedGuestIsReported checks that a guest that another tool removes is reported, not forgotten.
func TestVanishedGuestIsReported(t *testing.T) {
	l := newHolding(t)
	l.etcd.members = l.etcd.members[:5]
	if d := decide.Decide(l.same("without a guest").state); d.Rule != "GuestLost" || d.Verdict != decide.Block {
		t.Errorf("%s", d)
	}
}

// TestEndpointOfAnotherCluster checks that an endpoint that leads to another cluster, or hangs, does not prevent
// changes.
func TestEndpointOfAnotherCluster(t *testing.T) {
	l := newHolding(t)
	l.adopts.Endpoints = append(l.adopts.Endpoints, other(l), l.etcd.endpoint(40))
	c := l.same("with endpoints of a different cluster")
	if m := c.state.Membership; !m.Known || decide.Answering(m.Members) != 6 || m.ClusterID != fakeClusterID {
		t.Fatalf("%+v", m)
	}
	if outcome, err := c.changeEtcd(t.Context(), decide.AddLearner{}, addition(decide.AddLearner{Ordinal: 3, PeerURL: peerOf(3)})); err != nil || !outcome.Changed {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestGuestIsReleased checks that a guest is removed only if the conditions for its removal still hold.
func TestGuestIsReleased(t *testing.T) {
	for what, test := range map[string]struct {
		before func(l *life)
		change func(l *life, c *cluster)
		want   string
	}{
		"guest is healthy":                 {nil, nil, ""},
		"guest is not responding":          {func(l *life) { l.etcd.running[10].hangs.Store(true) }, nil, ""},
		"guest responds again":             {func(l *life) { l.etcd.running[10].hangs.Store(true) }, func(l *life, _ *cluster) { l.etcd.running[10].hangs.Store(false) }, "responds"},
		"guest is no longer recorded":      {nil, func(l *life, _ *cluster) { l.record.Guests = l.record.Guests[1:] }, "is not recorded as a guest that git releases"},
		"git no longer releases the guest": {nil, func(_ *life, c *cluster) { c.state.Declared.Adoption.Release = nil }, "is not recorded as a guest that git releases"},
		"a guest leads":                    {nil, func(l *life, _ *cluster) { l.etcd.leader = firstGuest + 1 }, "a guest leads"},
		"another voter is lost":            {nil, func(l *life, _ *cluster) { l.etcd.members = l.etcd.members[:5] }, "the other voters have changed"},
		"a replica hangs":                  {nil, func(l *life, _ *cluster) { l.etcd.running[2].hangs.Store(true) }, "the other voters have changed"},
		"a pod is not ready":               {nil, func(l *life, _ *cluster) { l.pods[1].Status.Conditions = nil }, "pod a-1 is no longer ready"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newHolding(t)
			l.adopts.Release = []decide.ID{firstGuest}
			if test.before != nil {
				test.before(l)
			}
			c := l.seen(l.old)
			for i := range c.state.Replicas {
				c.state.Replicas[i].VolumeUID = fmt.Sprint("volume-", i)
			}
			a, is := decide.Decide(c.state).Action.(decide.RemoveMember)
			if !is || a.ID != firstGuest {
				t.Fatalf("%s", decide.Decide(c.state))
			}
			if test.change != nil {
				test.change(l, c)
			}
			c.live.kube = clientOf(t, l.server())
			outcome, err := c.removeMember(t.Context(), a)
			removed := !slices.ContainsFunc(l.etcd.members, func(m *listedMember) bool { return m.ID == firstGuest })
			if err != nil || removed != (test.want == "") || !strings.Contains(outcome.Detail, test.want) {
				t.Errorf("removed: %t, %+v, %v", removed, outcome, err)
			}
		})
	}
}

// TestLearnerJoinsGuests checks that a guest is not mistaken for a member that may be about to start.
func TestLearnerJoinsGuests(t *testing.T) {
	l := newHolding(t)
	l.etcd.members[4].ClientURLs = nil
	c := l.seen(l.old)
	c.live.kube = clientOf(t, l.server())
	if why, err := c.besideJoining(t.Context(), c.state.Membership); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	l.record.Guests = nil
	if why, err := c.besideJoining(t.Context(), c.state.Membership); why == "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
}

// TestAdoption begins an adoption on a real API server and adds the first replica at the guests' leader. A second pass
// that decides the same does not overwrite the record.
func TestAdoption(t *testing.T) {
	s := newStage(t)
	source := newFakeEtcd(t, 0)
	source.leader = firstGuest
	order := source.host(3)
	s.spec = fmt.Sprintf("version: 3.6.16, tls: {mode: Disabled}, adopt: {clusterID: %q, endpoints: [%s]}", order.ClusterID,
		strings.Join(order.Endpoints, ", "))
	s.do(s.observe(), decide.Declare{}, true)
	c, second, third := s.observe(), s.observe(), s.observe()
	begin := decide.Bootstrap{Adopts: fakeClusterID}
	if d := decide.Decide(c.state); d.Action != begin {
		t.Fatalf("%s", d)
	}
	last := source.members[2]
	source.members = source.members[:2]
	s.do(third, begin, false)
	source.members = append(source.members, last)
	s.do(c, begin, true)
	s.do(second, begin, false)

	c = s.observe()
	s.settled(c)
	want := []decide.ID{firstGuest, firstGuest + 1, firstGuest + 2}
	record := c.state.Record
	if record.Adopted != fakeClusterID || record.ClusterID != fakeClusterID || !slices.Equal(record.Guests, want) || len(record.Members) > 0 ||
		strings.Contains(record.Token, "-") {
		t.Errorf("%+v", record)
	}
	if set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", "a"); set == nil || *set.Spec.Replicas != 0 {
		t.Errorf("%+v", set)
	}
	d := decide.Decide(c.state)
	learner, is := d.Action.(decide.AddLearner)
	if !is || learner.PeerURL != peerOf(0) {
		t.Fatalf("%s", d)
	}
	s.do(c, learner, true)
	if len(source.members) != 4 || !source.members[3].IsLearner {
		t.Errorf("%v", source.members)
	}
	c = s.observe()
	if d = decide.Decide(c.state); d.Rule != "ApplyObjects" {
		t.Fatalf("%s", d)
	}
	s.do(c, d.Action, true)
	file := inventory.Get[*corev1.ConfigMap](s.observe().own, "ConfigMap", "a-members").Data[objects.ConfigKey("a-0", c.runs())]
	if !strings.Contains(file, "initial-cluster: a-0="+peerOf(0)+",guest-0000000000000011=http://10.0.0.0:2380,guest-0000000000000011=http://old-0.old.default.svc:2380,") {
		t.Errorf("%s", file)
	}
}

// TestEndpointPods checks which endpoints are pods in the cluster's namespace.
func TestEndpointPods(t *testing.T) {
	for host, want := range map[string]string{
		"old-0.old.default.svc": "old-0", "old-0.old.default.svc.cluster.local": "old-0",
		"old-0.old.other.svc": "", "old.default.svc": "", "old-0.old.default": "", "10.0.0.1": "", ".old.default.svc": "",
		"x.old-0.old.default.svc": "", "old-0.old.default.svc.example.com": "", "::1": "",
	} {
		if got, _ := podAt(host, "default"); got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// TestNamesOfLocalAddressesAreRefused checks that an endpoint is not dialed if its name resolves to a local address,
// but that a declared local address is dialed.
func TestNamesOfLocalAddressesAreRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	c := &cluster{live: &Live{}}
	if conn, err := c.dialEndpoint(t.Context(), "127.0.0.1:"+port); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	if _, err := c.dialEndpoint(t.Context(), "localhost:"+port); err == nil || !strings.Contains(err.Error(), "which is local to this machine") {
		t.Error(err)
	}
	for address, want := range map[string]bool{
		"10.0.0.1:2379": true, "[fd00::1]:2379": true, "127.0.0.1:2379": false, "[::1]:2379": false, "0.0.0.0:1": false,
		"169.254.169.254:80": false, "[fe80::1%eth0]:1": false, "[::ffff:127.0.0.1]:1": false, "x": false,
	} {
		if err := refuseLocal("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestEndpointsAreForwarded checks that, outside the Kubernetes cluster, a pod in the cluster's namespace is reached
// through the API server, on the declared port.
func TestEndpointsAreForwarded(t *testing.T) {
	var asked atomic.Value
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/default/pods/old-0" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"old-0"},"spec":{"hostname":"old-0","subdomain":"old"}}`))
			return
		}
		asked.Store(r.URL.Path)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`pods "old-0" is forbidden: User "u" cannot create resource "pods/portforward"`))
	}))
	c := &cluster{live: &Live{kube: client, options: Options{PortForward: true}}}
	c.target.Cluster.Namespace = "default"
	_, err := c.dialEndpoint(t.Context(), "old-0.old.default.svc:2379")
	if err == nil || asked.Load() != "/api/v1/namespaces/default/pods/old-0/portforward" {
		t.Errorf("asked %v, %v", asked.Load(), err)
	}
	if _, err := c.dialEndpoint(t.Context(), "old-0.other.default.svc:2379"); err == nil || !strings.Contains(err.Error(), "has no pod old-0 of Service other") {
		t.Error(err)
	}
	for _, address := range []string{"old-0:x", "old-0", "old-0:70000"} {
		if _, err := c.dialEndpoint(t.Context(), address); err == nil {
			t.Errorf("%s is dialed", address)
		}
	}
}
