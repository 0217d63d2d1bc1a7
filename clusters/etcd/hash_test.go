package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

const goodValue, badValue = "the value that was put", "a value nobody has put"

// TestHashesAreReadOnlyOnSuspicion changes a value in a member's database, as a faulty disk might, and checks that
// members are asked for their hashes only if there is a reason.
func TestHashesAreReadOnlyOnSuspicion(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		kv := etcdserverpb.NewKVClient(s.raw(t, 0))
		for range 3 {
			if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(goodValue)}); err != nil {
				t.Fatal(err)
			}
		}
		suspected := s.cluster(3)
		suspected.CompareData = true
		requireHashes(t, clients, s.cluster(3), "quiet", [3]int{0, 0, 0}, 0, 0)
		requireHashes(t, clients, suspected, "all good", [3]int{1, 1, 1}, 4, -1)
		grown, smaller := s.cluster(3), s.cluster(3)
		grown.CompareFrom, smaller.CompareFrom = 3, 4
		requireHashes(t, clients, grown, "as many as are to be compared", [3]int{1, 1, 1}, 4, -1)
		requireHashes(t, clients, smaller, "too few", [3]int{0, 0, 0}, 0, 0)
		due := s.cluster(3)
		due.CompareHealthy = true
		requireHashes(t, clients, due, "all members are healthy", [3]int{1, 1, 1}, 4, -1)

		s.changeValue(1)
		requireHashes(t, clients, s.cluster(3), "nobody knows", [3]int{0, 0, 0}, 0, 0)
		requireHashes(t, clients, suspected, "one is bad", [3]int{1, 2, 1}, 4, -1)
		s.raise(t, byName(t, answer.Membership, pod(0)).ID, etcdserverpb.AlarmType_CORRUPT)
		requireHashes(t, clients, s.cluster(3), "blamed", [3]int{1, 2, 1}, 4, -1)

		// etcd before 3.6 does not name a member in this alarm.
		nobody := decide.Alarm{Kind: "CORRUPT"}
		s.raise(t, nobody.ID, etcdserverpb.AlarmType_CORRUPT)
		for _, alarm := range []decide.Alarm{nobody, {ID: byName(t, answer.Membership, pod(0)).ID, Kind: "CORRUPT"}} {
			requireHashes(t, clients, s.cluster(3), "alarmed", [3]int{1, 2, 1}, 4, -1)
			twice(t, "disarm", func() error { return clients.DisarmAlarm(t.Context(), s.cluster(3), alarm) })
		}
		eventually(t, clients, s.cluster(3), "a membership without alarms", func(m decide.Membership) bool {
			return len(m.StaleAlarms) == 0 && len(byName(t, m, pod(0)).Alarms) == 0
		})

		if _, err := kv.Compact(t.Context(), &etcdserverpb.CompactionRequest{Revision: 3, Physical: true}); err != nil {
			t.Fatal(err)
		}
		requireHashes(t, clients, suspected, "compacted", [3]int{1, 2, 1}, 4, 3)

		s.kill(pod(2))
		requireHashes(t, clients, suspected, "one member is not responding", [3]int{1, 2, 0}, 4, 3)
		requireHashes(t, clients, due, "not all members are healthy", [3]int{0, 0, 0}, 0, 0)
	})
}

// requireHashes observes the cluster until the members' hashes are for the given revision and compaction, and are equal
// or different as the numbers in want are. Zero means no hash.
func requireHashes(t *testing.T, clients *etcd.Clients, cluster etcd.Cluster, when string, want [3]int, revision, compacted int64) {
	t.Helper()
	eventually(t, clients, cluster, "the expected hashes: "+when, func(m decide.Membership) bool {
		numbers := map[decide.Hash]int{{}: 0}
		var got [3]int
		for i := range got {
			hash := byName(t, m, pod(i)).Hash
			if _, seen := numbers[hash]; !seen {
				numbers[hash] = len(numbers)
			}
			if got[i] = numbers[hash]; hash.Known() && (hash.Revision != revision || hash.CompactRevision != compacted) {
				return false
			}
		}
		return m.Known && got == want
	})
}

// changeValue changes all copies of the value in the database of a running member. bbolt has checksums only for its two
// meta pages and reads through the page cache, so etcd reads the changed value without an error.
func (s *servers) changeValue(i int) {
	s.commit(i)
	s.freeze(pod(i))
	defer s.thaw(pod(i))
	file, err := os.OpenFile(filepath.Join(s.dirs[pod(i)], "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		s.t.Fatal(err)
	}
	found := 0
	for at := 0; ; at += len(goodValue) {
		next := bytes.Index(content[at:], []byte(goodValue))
		if next < 0 {
			break
		}
		at += next
		found++
		if _, err := file.WriteAt([]byte(badValue), int64(at)); err != nil {
			s.t.Fatal(err)
		}
	}
	if found == 0 {
		s.t.Fatalf("%s does not hold the value", file.Name())
	}
}

// commit returns once a member has written everything to its database and will not write more. It makes the member
// catch up and then hash its whole database; before hashing, etcd commits the writes that it otherwise batches for 100
// ms. Without this, etcd could overwrite the changed pages with older content.
func (s *servers) commit(i int) {
	conn := s.raw(s.t, i)
	if _, err := etcdserverpb.NewKVClient(conn).Range(s.t.Context(), &etcdserverpb.RangeRequest{Key: []byte("k")}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := etcdserverpb.NewMaintenanceClient(conn).Hash(s.t.Context(), &etcdserverpb.HashRequest{}); err != nil {
		s.t.Fatal(err)
	}
}

// TestHashOfWrongMemberIsRejected checks that HashOf rejects errors, and responses for another member or revision.
func TestHashOfWrongMemberIsRejected(t *testing.T) {
	header := func(member uint64) *etcdserverpb.ResponseHeader {
		return &etcdserverpb.ResponseHeader{ClusterId: 7, MemberId: member, Revision: 9}
	}
	for want, answer := range map[string]*etcdserverpb.HashKVResponse{
		"": {Header: header(1), Hash: 5, CompactRevision: 4, HashRevision: 9},
		"its response identifies a different member":  {Hash: 5},
		"its response identifies a different member ": {Header: header(2), Hash: 5},
		"its response is not for revision 9":          {Header: header(1), Hash: 5, HashRevision: 8},
		"its response is not for revision 9 ":         {Header: header(1), Hash: 5, CompactRevision: 10},
		"mvcc: required revision is a future one":     nil,
	} {
		hash, why := etcd.HashOf(t.Context(), 7, 1, 9, answer)
		if why != strings.TrimSpace(want) || hash.Known() != (want == "") {
			t.Errorf("%v: %q, %s", answer, why, fmt.Sprint(hash))
		}
	}
}

// TestHashTimeoutIgnoresReportedSize checks that a hash request times out, whatever size the member reports.
func TestHashTimeoutIgnoresReportedSize(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(statuses(func(s *etcdserverpb.StatusResponse) { s.DbSize = 1<<63 - 1 }))
	cluster := s.cluster()
	cluster.CompareData = true
	for _, m := range newClients(t).Observe(t.Context(), cluster).Membership.Members {
		if !m.Hash.Known() {
			t.Errorf("%s: %s", m.Name, m.HashWhy)
		}
	}
}

// TestSlowHashLeavesTimeToDecide checks that a member that does not respond to the request for its hash delays an
// observation by at most half of the remaining time, and that the reason is reported.
func TestSlowHashLeavesTimeToDecide(t *testing.T) {
	t.Parallel()
	s := form(t, binaries(t)[len(binaries(t))-1], nil, 3)
	eventually(t, newClients(t), s.cluster(3), "three responding members", allAnswer(3))
	proxied := s.proxied(t, 3, func(c call) ([]byte, error) {
		if c.pod == pod(1) && c.method == "HashKV" {
			<-t.Context().Done()
		}
		return c.passOn()
	})
	proxied.CompareHealthy = true
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	answer := newClients(t).Observe(ctx, proxied)
	slow, fast := byName(t, answer.Membership, pod(1)), byName(t, answer.Membership, pod(0))
	if ctx.Err() != nil || !answer.Membership.Known || slow.HashWhy == "" || !fast.Hash.Known() {
		t.Errorf("%v: %+v", ctx.Err(), answer.Membership)
	}
}
