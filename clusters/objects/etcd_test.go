package objects

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRealEtcd runs real members with the configuration files that this package writes. QUORATE_ETCD_DIR is a
// directory that contains etcd-VERSION/etcd. The members run on their own loopback addresses, in a mount namespace
// with its own /etc/hosts, which requires root.
func TestRealEtcd(t *testing.T) {
	for text, binary := range etcdToTest(t) {
		for _, mode := range []v1alpha1.TLSMode{v1alpha1.TLSManaged, v1alpha1.TLSDisabled} {
			t.Run(text+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				c := threeMembers(t, text)
				c.Spec.TLS.Mode = mode
				w := newWorld(t, c, binary)
				w.found()
				w.refuseStrangers()
				w.authenticate()
				w.restartSealed()
				w.loseData()
				w.joinAnew()
			})
		}
	}
}

// TestRealEtcdOptions starts a member with every option of its version and checks the options that the member logs.
func TestRealEtcdOptions(t *testing.T) {
	for text, binary := range etcdBinaries(t) {
		t.Run(text, func(t *testing.T) {
			c := threeMembers(t, text)
			c.Spec.Etcd.AutoCompaction = &v1alpha1.AutoCompaction{Mode: v1alpha1.CompactionRevision, Retention: "1000"}
			c.Spec.Etcd.HeartbeatInterval, c.Spec.Etcd.ElectionTimeout = "150ms", "2s"
			c.Spec.Etcd.Options = optionsOf(mustParse(t, text))
			delete(c.Spec.Etcd.Options, "enable-distributed-tracing") // it would contact a collector
			c.Spec.Etcd.Options["log-level"], c.Spec.Etcd.Options["tls-min-version"] = "info", "TLS1.3"
			w := newWorld(t, c, binary)
			w.in.Record = record(1, decide.Founding)
			w.start(0)
			w.waitReady(0)
			w.refuseTLS12(0)
			started := w.startLog(0)
			for key, want := range map[string]any{
				"quota-backend-bytes":         float64(2 << 30),
				"max-request-bytes":           float64(1536 << 10),
				"heartbeat-interval":          "150ms",
				"election-timeout":            "1.95s", // a multiple of the heartbeat interval
				"auto-compaction-mode":        "revision",
				"auto-compaction-retention":   "1µs", // 1000, printed by etcd as nanoseconds
				"corrupt-check-time-interval": "7s",
				"max-wals":                    float64(10000),
				"max-snapshots":               float64(10000),
				"pre-vote":                    true,
			} {
				// Old releases log fewer options.
				if got, says := started[key]; got != want && (says || w.version().AtLeast(etcdversion.Must("3.5.35"))) {
					t.Errorf("%s: etcd runs with %v, want %v", key, got, want)
				}
			}
		})
	}
}

// refuseTLS12 reports an error if a member accepts TLS 1.2 on one of its ports.
func (w *world) refuseTLS12(n int) {
	for _, port := range []string{"2379", "2380"} {
		address := net.JoinHostPort(w.address(n), port)
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if err == nil {
			connection.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "protocol version") {
			w.Errorf("%s accepts TLS 1.2: %v", address, err)
		}
	}
}

// found starts three initial members.
func (w *world) found() {
	for n := range 3 {
		w.start(n)
	}
	for n := range 3 {
		w.waitReady(n)
	}
	w.call(0, "/v3/kv/put", map[string]any{"key": encode("k"), "value": encode("v")})
	if members := w.list(); len(members) != 3 {
		w.Fatalf("members: %v", members)
	}
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// list returns the members' IDs by peer URL.
func (w *world) list() map[string]any {
	ids := map[string]any{}
	for _, m := range w.call(0, "/v3/cluster/member/list", map[string]any{})["members"].([]any) {
		fields := m.(map[string]any)
		ids[fields["peerURLs"].([]any)[0].(string)] = fields["ID"]
	}
	return ids
}

// restartSealed restarts the members one after another. Restarting all members together also works, but takes as long,
// because each member waits for the data hashes of the others, up to the request timeout of 7 s per member.
func (w *world) restartSealed() {
	w.in.Record = record(3, decide.Sealed)
	for n := range 3 {
		w.stop(n)
		w.start(n)
		w.waitReady(n)
		if !strings.Contains(w.log(n), "initial corruption checking passed") {
			w.Errorf("%s has not compared its data with the others'", PodName("a", n))
		}
		if got := w.call(n, "/v3/kv/range", map[string]any{"key": encode("k")}); got["count"] != "1" {
			w.Fatalf("%s has lost the key: %v", PodName("a", n), got)
		}
	}
}

// loseData deletes the data of the last member.
func (w *world) loseData() {
	w.stop(2)
	if err := os.RemoveAll(w.path("a-2", "data")); err != nil {
		w.Fatal(err)
	}
	m := w.start(2)
	select {
	case <-m.exited:
	case <-time.After(30 * time.Second):
		w.Fatalf("a sealed member without data continues:\n%s", w.log(2))
	}
	if m.process.ProcessState.Success() || !strings.Contains(w.log(2), `couldn't find local name`) {
		w.Fatalf("%s:\n%s", m.process.ProcessState, w.log(2))
	}
	w.waitReady(0)
	w.waitReady(1)
}

// joinAnew removes the lost member and adds it again.
func (w *world) joinAnew() {
	c := w.in.Cluster
	w.eventually("remove the member", func() bool {
		_, err := w.ask(0, "/v3/cluster/member/remove", map[string]any{"ID": w.list()[PeerURL(c, 2)]})
		return err == nil
	})
	w.eventually("add the member", func() bool {
		_, err := w.ask(0, "/v3/cluster/member/add", map[string]any{"peerURLs": []string{PeerURL(c, 2)}, "isLearner": true})
		return err == nil
	})
	w.in.Record.Members[2].Mode = decide.Joining
	w.in.Peers = map[string][]string{}
	for n := range 3 {
		w.in.Peers[PodName("a", n)] = []string{PeerURL(c, n)}
	}
	w.start(2)
	w.eventually("promote the member", func() bool {
		_, err := w.ask(0, "/v3/cluster/member/promote", map[string]any{"ID": w.list()[PeerURL(c, 2)]})
		return err == nil
	})
	w.waitReady(2)
	w.in.Record.Members[2].Mode = decide.Sealed
	w.stop(2)
	w.start(2)
	w.waitReady(2)
	if got := w.call(2, "/v3/kv/range", map[string]any{"key": encode("k")}); got["count"] != "1" {
		w.Fatalf("the new member lacks the key: %v", got)
	}
}

// eventually repeats a request that etcd may reject for a while, for example right after a membership change.
func (w *world) eventually(what string, do func() bool) {
	w.Helper()
	for deadline := time.Now().Add(60 * time.Second); !do(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not in time:\n%s", what, w.log(2))
		}
	}
}
