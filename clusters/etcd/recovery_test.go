package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// formWith starts a three-member cluster with additional flags.
func formWith(t *testing.T, binary string, flags ...string) *servers {
	s := newServers(t, binary, nil)
	initial := fmt.Sprintf("--initial-cluster=%s=%s,%s=%s,%s=%s", pod(0), s.peerURL(0), pod(1), s.peerURL(1), pod(2), s.peerURL(2))
	for i := range 3 {
		s.startIn(i, filepath.Join(t.TempDir(), pod(i)), append(flags, initial)...)
	}
	return s
}

// TestBestSurvivorHoldsAcknowledgedWrites kills all members at the same time under load. It checks that, for any two
// data directories, the directory whose log ends later holds every acknowledged write.
func TestBestSurvivorHoldsAcknowledgedWrites(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := formWith(t, binary, "--snapshot-count=100", "--max-snapshots=1")
		eventually(t, newClients(t), s.cluster(3), "three responding members", allAnswer(3))
		acknowledged := writeUntilKilled(t, s)
		for lost := range 3 {
			best, revision, cluster := -1, snapshot.Position{}, uint64(0)
			for i := range 3 {
				found, err := snapshot.SurvivorOf(s.dirs[pod(i)])
				if err != nil || found.Name != pod(i) || len(found.Voters) != 3 || found.MembersMayDiffer || found.Committed == 0 {
					t.Fatalf("%s: %+v, %v", pod(i), found, err)
				}
				if i != lost && found.End.Compare(revision) > 0 {
					best, revision, cluster = i, found.End, found.ClusterID
				}
			}
			dirs := slices.Delete([]string{s.dirs[pod(0)], s.dirs[pod(1)], s.dirs[pod(2)]}, lost, lost+1)
			latest, err := recovery.Latest(t.Context(), recovery.TrustedFiles{}, cluster, dirs)
			if err != nil || latest.Lag != nil || latest.Survivor.End != revision {
				t.Errorf("without %s, %s is copied: %v, %v", pod(lost), latest.DataDir, latest.Lag, err)
			}
			latest.Close()
			held := s.recovered(t, best)
			for _, key := range acknowledged {
				if !held[key] {
					t.Errorf("without %s, %s was recovered, but the acknowledged key %s is lost", pod(lost), pod(best), key)
				}
			}
		}
	})
}

// writeUntilKilled writes through all members, kills them, and returns the acknowledged keys.
func writeUntilKilled(t *testing.T, s *servers) (acknowledged []string) {
	var mu sync.Mutex
	var writers sync.WaitGroup
	enough := make(chan struct{})
	for writer := range 24 {
		kv := etcdserverpb.NewKVClient(s.raw(t, writer%3))
		writers.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("w%d/%d", writer, n)
				if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(key)}); err != nil {
					return
				}
				mu.Lock()
				if acknowledged = append(acknowledged, key); len(acknowledged) == 2000 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Error("it is too slow")
	}
	for i := range 3 {
		_ = s.processes[pod(i)].Process.Kill()
	}
	for i := range 3 {
		s.kill(pod(i))
	}
	writers.Wait()
	return acknowledged
}

// toRecover prepares to recover a copy of a member's data.
func (s *servers) toRecover(t *testing.T, i int) recovery.Order {
	t.Helper()
	program, err := etcdprocess.Find(t.Context(), s.binary)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := snapshot.CopyMember(t.Context(), s.dirs[pod(i)], dir); err != nil {
		t.Fatal(err)
	}
	into := snapshot.Restoration{
		DataDir: dir, Name: pod(i), PeerURL: s.peerURL(i), InitialCluster: pod(i) + "=" + s.peerURL(i), Token: dir, Bump: 1000,
	}
	was, err := snapshot.IdentityOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return recovery.Order{Into: into, ClusterID: was.ClusterID, Etcd: program, Inspect: inspect, Files: recovery.TrustedFiles{}}
}

// recovered recovers a copy of a member, and returns its keys.
func (s *servers) recovered(t *testing.T, i int) map[string]bool {
	t.Helper()
	o := s.toRecover(t, i)
	dir := o.Into.DataDir
	before := tree(t, filepath.Join(dir, "member"))
	var r recovery.Recovered
	if err := recovery.Recover(t.Context(), o, func(made recovery.Recovered) error { r = made; return made.Place("member.lost") }); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, filepath.Join(dir, "member.lost")); after != before {
		t.Errorf("the member was changed:\n%s\n%s", before, after)
	}
	was, err := snapshot.IdentityIn(filepath.Join(dir, "member.lost"))
	if err != nil || was != r.Survivor.Identity {
		t.Errorf("kept %+v, %v; it was %+v", was, err, r.Survivor.Identity)
	}
	defer func(left string) { s.dirs[pod(i)] = left }(s.dirs[pod(i)])
	s.startIn(i, dir, "--initial-cluster="+o.Into.InitialCluster, "--initial-cluster-token="+dir)
	defer s.kill(pod(i))
	answer := eventually(t, newClients(t), s.cluster(i+1), "a cluster of one", func(m decide.Membership) bool {
		return m.Known && len(m.Members) == 1 && m.Members[0].Answers
	})
	if id := answer.Membership.ClusterID; uint64(id) == r.Survivor.ClusterID || uint64(id) != r.Made.Identity.ClusterID {
		t.Errorf("the cluster ID is %x, was %x, and was created as %x", id, r.Survivor.ClusterID, r.Made.Identity.ClusterID)
	}
	if revision := answer.Membership.Members[0].Revision; revision < r.Facts.Revision+1000 {
		t.Errorf("the member is at revision %d, but the survivor was at %d", revision, r.Facts.Revision)
	}
	return keys(t, etcdserverpb.NewKVClient(s.raw(t, i)))
}

func keys(t *testing.T, kv etcdserverpb.KVClient) map[string]bool {
	t.Helper()
	all, err := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, KeysOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, pair := range all.Kvs {
		held[string(pair.Key)] = true
	}
	return held
}

// tree lists the files in a directory with size and time.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var said strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			fmt.Fprintln(&said, strings.TrimPrefix(path, dir), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return said.String()
}

// TestRecoverKeepsUncommittedEntries checks that an entry that the survivor does not know to be committed is kept,
// because its leader may have acknowledged it. etcd itself drops the entry.
func TestRecoverKeepsUncommittedEntries(t *testing.T) {
	t.Parallel()
	all := binaries(t)
	s := form(t, all[len(all)-1], nil, 3)
	clients := newClients(t)
	answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	members := answer.Membership.Members
	var leader int
	if _, err := fmt.Sscanf(members[slices.IndexFunc(members, func(m decide.Member) bool { return m.Leader })].Name, name+"-%d", &leader); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i != leader {
			s.freeze(pod(i))
		}
	}
	kv := etcdserverpb.NewKVClient(s.raw(t, leader))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("unknown")}) }()
	defer cancel()
	for end := time.Now().Add(patience); !logged(t, s.dirs[pod(leader)], "unknown"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the leader does not write it to its log")
		}
	}
	if _, err := snapshot.SurvivorOf(s.dirs[pod(leader)]); !errors.Is(err, snapshot.ErrRunning) {
		t.Errorf("etcd is running, and the error is %v", err)
	}
	for i := range 3 {
		s.kill(pod(i))
	}
	found, err := snapshot.SurvivorOf(s.dirs[pod(leader)])
	if err != nil || found.Committed >= found.End.Index {
		t.Fatalf("%+v, %v", found, err)
	}
	if held := s.recovered(t, leader); !held["unknown"] {
		t.Errorf("it holds %v", held)
	}
}

// logged reports whether the newest file of a member's log contains a text.
func logged(t *testing.T, dir, text string) bool {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	content, err := os.ReadFile(logs[len(logs)-1])
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(content, []byte(text))
}

// TestUnfitSurvivorsAreRejected checks that a cluster is not created from unsuitable members, and that etcd's next
// minor version, which converts the data, is used only if it is declared.
func TestUnfitSurvivorsAreRejected(t *testing.T) {
	program := func(version string) etcdprocess.Program {
		return etcdprocess.Program{Version: etcdversion.Must(version)}
	}
	of := func(version string) snapshot.Survivor {
		return snapshot.Survivor{Facts: snapshot.Facts{ClusterVersion: version}}
	}
	learner, beside := of("3.6.0"), of("3.6.0")
	learner.Learner = true
	beside.Learners = 1
	for _, c := range []struct {
		survivor snapshot.Survivor
		etcd     string
		want     error
	}{
		{snapshot.Survivor{}, "3.7.0", nil},
		{of("3.4.0"), "3.5.22", nil},
		{of("3.5.0"), "3.5.21", etcdprocess.ErrVersion},
		{of("3.5.0"), "3.5.22", nil},
		{of("3.4.0"), "3.4.40", etcdprocess.ErrVersion},
		{of("3.6.0"), "3.6.0", etcdprocess.ErrVersion},
		{of("3.6.0"), "3.6.1", nil},
		{of("3.7.0"), "3.6.16", etcdprocess.ErrVersion},
		{of("3.7.0"), "3.7.3", nil},
		{of("3.8.0"), "3.8.0", nil},
		{of("3.5.0"), "3.7.3", etcdprocess.ErrVersion},
		{beside, "3.6.5", etcdprocess.ErrVersion},
		{beside, "3.6.6", nil},
		{learner, "3.6.16", recovery.ErrUnfit},
	} {
		for _, check := range []func(snapshot.Survivor, etcdprocess.Program) error{recovery.CheckDeclared, recovery.Check} {
			if err := check(c.survivor, program(c.etcd)); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%+v with %s: %v, want %v", c.survivor, c.etcd, err, c.want)
			}
		}
	}
	for _, etcd := range []string{"3.5.35", "3.7.0"} {
		const want = ", but the cluster ran etcd 3.6; use etcd 3.6 (--etcd). The result can then be started with etcd 3.6 or 3.7"
		err := recovery.Check(of("3.6.0"), program(etcd))
		if !errors.Is(err, etcdprocess.ErrVersion) || !strings.HasSuffix(err.Error(), "the program is etcd "+etcd+want) {
			t.Errorf("%s: %v", etcd, err)
		}
	}
	if err := recovery.CheckDeclared(of("3.6.0"), program("3.7.0")); err != nil {
		t.Error(err)
	}
	if err := recovery.Check(learner, program("3.7.0")); !errors.Is(err, recovery.ErrUnfit) {
		t.Error(err)
	}
}
