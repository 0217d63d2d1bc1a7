package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// source is a cluster of real members that a backup is taken of.
type source struct {
	clients *etcd.Clients
	cluster etcd.Cluster
}

func (s source) Snapshot(ctx context.Context) (*etcd.Snapshot, error) {
	return s.clients.Snapshot(ctx, s.cluster)
}

func (s source) Prove(ctx context.Context, wanted decide.Hash) etcd.Proof {
	return s.clients.Prove(ctx, s.cluster, wanted)
}

func inspect(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) }

func order(t *testing.T) backup.Order {
	return backup.Order{Cluster: store.Cluster{Namespace: namespace, Name: name}, Slot: time.Now(), Spool: t.TempDir(), Inspect: inspect}
}

// TestRealSnapshots takes backups of random histories. The hash that is computed of each is what the
// members themselves say, on every version.
func TestRealSnapshots(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		eventually(t, clients, s.cluster(3), "three answering members", allAnswer(3))
		seed := rand.Uint64()
		chance := rand.New(rand.NewPCG(seed, 0))
		kv := etcdserverpb.NewKVClient(s.raw(t, 0))
		compared := 0
		for round := range 12 {
			change(t, kv, chance, round)
			taken, err := backup.Take(t.Context(), source{clients, s.cluster(3)}, order(t))
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			facts := taken.Manifest.Snapshot
			if facts.Hash == nil && facts.HashWhy == "a compaction was under way" || facts.CompactRevision == facts.Revision {
				continue
			}
			compared++
			if len(facts.ProvenBy) < 2 || facts.Unproven != "" || facts.ClusterVersion == "" {
				t.Fatalf("seed %d, round %d: %+v", seed, round, facts)
			}
		}
		if compared < 6 {
			t.Errorf("seed %d: only %d of 12 were compared", seed, compared)
		}
	})
}

// change does at random what clients do. The last rounds delete everything.
func change(t *testing.T, kv etcdserverpb.KVClient, chance *rand.Rand, round int) {
	for range 5 + chance.IntN(30) {
		key := fmt.Appendf(nil, "k%d", chance.IntN(8))
		put := &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: &etcdserverpb.PutRequest{
			Key: key, Value: fmt.Append(nil, chance.Uint64()),
		}}}
		remove := &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{
			Key: fmt.Appendf(nil, "k%d", chance.IntN(8)), RangeEnd: []byte("k9"),
		}}}
		ops := [][]*etcdserverpb.RequestOp{{put}, {put}, {remove}}[chance.IntN(3)]
		if round > 9 {
			remove.GetRequestDeleteRange().Key, remove.GetRequestDeleteRange().RangeEnd = []byte{0}, []byte{0}
			ops = []*etcdserverpb.RequestOp{remove}
		}
		done, err := kv.Txn(t.Context(), &etcdserverpb.TxnRequest{Success: ops})
		if err != nil {
			t.Fatal(err)
		}
		if chance.IntN(12) == 0 {
			compact := &etcdserverpb.CompactionRequest{Revision: max(1, done.Header.Revision-int64(chance.IntN(4))), Physical: true}
			if _, err := kv.Compact(t.Context(), compact); err != nil && !isCompacted(err) {
				t.Fatal(err)
			}
		}
	}
}

func isCompacted(err error) bool {
	return err != nil && slices.Contains([]string{"rpc error: code = OutOfRange desc = etcdserver: mvcc: required revision has been compacted"}, err.Error())
}

// TestSnapshotNeedsQuorum: what a member holds that is cut off may be old.
func TestSnapshotNeedsQuorum(t *testing.T) {
	s := form(t, binaries(t)[0], nil, 3)
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "three answering members", allAnswer(3))
	s.freeze(pod(1))
	s.freeze(pod(2))
	if _, err := clients.Snapshot(t.Context(), s.cluster(3)); err == nil {
		t.Error("it took one of a member that is cut off")
	}
	s.thaw(pod(1))
	s.thaw(pod(2))
}

// TestSnapshotOfOtherData: of three members one holds other data, and nobody knows.
func TestSnapshotOfOtherData(t *testing.T) {
	s := form(t, binaries(t)[len(binaries(t))-1], nil, 3)
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "three answering members", allAnswer(3))
	kv := etcdserverpb.NewKVClient(s.raw(t, 0))
	for range 3 {
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(goodValue)}); err != nil {
			t.Fatal(err)
		}
	}
	s.changeValue(pod(1))
	// Whichever of them is asked, the snapshot that comes out is the quorum's.
	taken, err := backup.Take(t.Context(), source{clients, s.cluster(3)}, order(t))
	switch {
	case errors.Is(err, backup.ErrDiffers):
	case err != nil:
		t.Error(err)
	case taken.Manifest.Member == pod(1) || len(taken.Manifest.Snapshot.ProvenBy) < 2:
		t.Errorf("%+v", taken.Manifest)
	}
}

// TestRealRestore stores a backup, reads it back, and starts etcd with what is restored of it.
func TestRealRestore(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		clients := newClients(t)
		answer := eventually(t, clients, s.cluster(1), "an answering member", allAnswer(1))
		kv := etcdserverpb.NewKVClient(s.raw(t, 0))
		put, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(goodValue)})
		if err != nil {
			t.Fatal(err)
		}
		alarm := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
		alarm.MemberID = uint64(byName(t, answer.Membership, pod(0)).ID)
		if _, err := etcdserverpb.NewMaintenanceClient(s.raw(t, 0)).Alarm(t.Context(), alarm); err != nil {
			t.Fatal(err)
		}
		o := order(t)
		o.Encoding.Compress = true
		taken, err := backup.Take(t.Context(), source{clients, s.cluster(1)}, o)
		if err != nil {
			t.Fatal(err)
		}
		bucket := openDirectory(t)
		m, err := taken.Store(t.Context(), bucket, o)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "snapshot.db")
		if _, err := backup.Fetch(t.Context(), bucket, m, file, backup.Reading{Inspect: inspect}); err != nil {
			t.Fatal(err)
		}
		s.kill(pod(0))
		restored := newServers(t, binary, nil)
		restored.restore(file, snapshot.DefaultBump)
		fresh := newClients(t)
		eventually(t, fresh, restored.cluster(1), "the restored member", allAnswer(1))
		kv = etcdserverpb.NewKVClient(restored.raw(t, 0))
		got, err := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("k")})
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != goodValue || got.Header.Revision != put.Header.Revision+snapshot.DefaultBump {
			t.Fatalf("%v %v", got, err)
		}
		if _, err := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("k"), Revision: put.Header.Revision}); !isCompacted(err) {
			t.Errorf("a read at an old revision: %v", err)
		}
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte("new")}); err != nil {
			t.Errorf("the alarm came along: %v", err)
		}
	})
}

func openDirectory(t *testing.T) store.Bucket {
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.S3{})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// restore starts the first member with the data of a snapshot.
func (s *servers) restore(file string, bump uint64) {
	dir := filepath.Join(s.t.TempDir(), "data")
	err := snapshot.Restore(file, snapshot.Restoration{
		DataDir: dir, Name: pod(0), PeerURL: s.peerURL(0), InitialCluster: pod(0) + "=" + s.peerURL(0), Token: s.subnet, Bump: bump,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.startIn(0, dir)
}

// TestFilesAreTold: what is no snapshot, and what was one, end in an error that says so.
func TestFilesAreTold(t *testing.T) {
	s := form(t, binaries(t)[0], nil, 1)
	clients := newClients(t)
	eventually(t, clients, s.cluster(1), "an answering member", allAnswer(1))
	taken, err := backup.Take(t.Context(), source{clients, s.cluster(1)}, order(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(taken.File)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	flipped[len(whole)/2] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"whole":   {whole, nil},
		"cut":     {whole[:len(whole)-512], snapshot.ErrChecksum},
		"short":   {whole[:len(whole)-1], snapshot.ErrTruncated},
		"empty":   {nil, snapshot.ErrTruncated},
		"flipped": {flipped, snapshot.ErrChecksum},
	} {
		file := filepath.Join(t.TempDir(), "s.db")
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := snapshot.CheckFile(file); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
