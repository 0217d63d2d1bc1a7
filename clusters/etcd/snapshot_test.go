package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/drill"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

func inspect(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) }

func order(t *testing.T) backup.Order {
	return backup.Order{Cluster: store.Cluster{Namespace: namespace, Name: name}, Slot: time.Now(), Spool: t.TempDir(), Inspect: inspect}
}

// TestSnapshotHashesMatchMembers takes backups of random histories. The computed hash of each backup must equal the
// hash that the members report, with every version.
func TestSnapshotHashesMatchMembers(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		seed := rand.Uint64()
		chance := rand.New(rand.NewPCG(seed, 0))
		kv := etcdserverpb.NewKVClient(s.raw(t, 0))
		compared := 0
		for round := range 12 {
			change(t, kv, chance, round)
			taken, err := backup.Take(t.Context(), clients.Source(s.cluster(3)), order(t))
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			if id, err := clients.ClusterID(t.Context(), s.cluster(3)); err != nil || fmt.Sprintf("%016x", uint64(id)) != taken.Manifest.ClusterID {
				t.Fatalf("seed %d, round %d: %x, %v, and it is of %s", seed, round, id, err, taken.Manifest.ClusterID)
			}
			facts := taken.Manifest.Snapshot
			if round%4 == 0 || facts.CompactRevision == facts.Revision {
				requireDrill(t, binary, taken)
			}
			if facts.Hash == nil && facts.HashWhy == "a compaction was in progress" || facts.CompactRevision == facts.Revision {
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

// requireDrill requires that etcd of the same version can be started with the backed-up data.
func requireDrill(t *testing.T, binary string, taken backup.Taken) {
	t.Helper()
	bucket := openDirectory(t)
	m, err := taken.Store(t.Context(), bucket, order(t))
	if err != nil {
		t.Fatal(err)
	}
	program, err := etcdprocess.Find(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	found, err := drill.Try(t.Context(), program, bucket, m, t.TempDir(), backup.Reading{Inspect: inspect})
	if err != nil || found.Revision != m.Snapshot.Revision || (found.Uncompared == "") != (m.Snapshot.Hash != nil) {
		t.Fatalf("%+v %+v, %v", m, found, err)
	}
}

// change makes random changes, as clients do. The last rounds delete everything.
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

// TestSnapshotNeedsQuorum checks that no snapshot is taken from a partitioned member, because its data may be old.
func TestSnapshotNeedsQuorum(t *testing.T) {
	s := form(t, binaries(t)[0], nil, 3)
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	s.freeze(pod(1))
	s.freeze(pod(2))
	if _, err := clients.Snapshot(t.Context(), s.cluster(3)); err == nil {
		t.Error("it took a snapshot of a partitioned member")
	}
	if id, err := clients.ClusterID(t.Context(), s.cluster(3)); err == nil {
		t.Errorf("it accepted the response of a partitioned member: %x", id)
	}
	s.thaw(pod(1))
	s.thaw(pod(2))
}

// TestSnapshotHoldsQuorumData checks that a snapshot holds the quorum's data even if one of the three members holds
// different data and etcd has not noticed.
func TestSnapshotHoldsQuorumData(t *testing.T) {
	s := form(t, binaries(t)[len(binaries(t))-1], nil, 3)
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	kv := etcdserverpb.NewKVClient(s.raw(t, 0))
	for range 3 {
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(goodValue)}); err != nil {
			t.Fatal(err)
		}
	}
	s.changeValue(1)
	// Whichever member is asked, the resulting snapshot must hold the quorum's data.
	taken, err := backup.Take(t.Context(), clients.Source(s.cluster(3)), order(t))
	switch {
	case err != nil:
		t.Error(err)
	case taken.Manifest.Member == pod(1) || len(taken.Manifest.Snapshot.ProvenBy) < 2:
		t.Errorf("%+v", taken.Manifest)
	}
}

// hashOf returns the hash on which all members of the cluster agree.
func hashOf(t *testing.T, cluster etcd.Cluster) decide.Hash {
	t.Helper()
	cluster.CompareData = true
	answer := eventually(t, newClients(t), cluster, "three members with equal hashes", func(m decide.Membership) bool {
		return allAnswer(3)(m) && byName(t, m, pod(0)).Hash.Known() && byName(t, m, pod(0)).Hash == byName(t, m, pod(1)).Hash && byName(t, m, pod(0)).Hash == byName(t, m, pod(2)).Hash
	})
	return byName(t, answer.Membership, pod(0)).Hash
}

// oneDiffers forms a three-member cluster whose second member holds different data, and returns the hash of the other
// two members. Proving the hash takes both of them.
func oneDiffers(t *testing.T) (*servers, decide.Hash) {
	t.Helper()
	s := form(t, binaries(t)[len(binaries(t))-1], nil, 3)
	eventually(t, newClients(t), s.cluster(3), "three responding members", allAnswer(3))
	kv := etcdserverpb.NewKVClient(s.raw(t, 0))
	for range 3 {
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(goodValue)}); err != nil {
			t.Fatal(err)
		}
	}
	hash := hashOf(t, s.cluster(3))
	for s.changeValue(1); s.holds(1, hash); s.changeValue(1) { // etcd has overwritten it
	}
	return s, hash
}

// holds reports whether a member's data has the given hash.
func (s *servers) holds(i int, hash decide.Hash) bool {
	s.t.Helper()
	answer, err := etcdserverpb.NewMaintenanceClient(s.raw(s.t, i)).
		HashKV(s.t.Context(), &etcdserverpb.HashKVRequest{Revision: hash.Revision})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.Hash == hash.Sum
}

// proving starts to prove a snapshot, and returns once the given pod is dialed for the second time, which happens only
// after the first attempt has failed.
func (s *servers) proving(ctx context.Context, clients *etcd.Clients, hash decide.Hash, pod string) <-chan etcd.Proof {
	s.t.Helper()
	cluster, again, proofs := s.cluster(3), make(chan struct{}), make(chan etcd.Proof, 1)
	var dialed atomic.Int32
	cluster.Dial = func(ctx context.Context, to string) (net.Conn, error) {
		if to == pod && dialed.Add(1) == 2 {
			close(again)
		}
		return s.dial(ctx, to)
	}
	go func() { proofs <- clients.Prove(ctx, cluster, hash) }()
	select {
	case <-again:
	case proof := <-proofs:
		s.t.Fatalf("it did not wait: %+v", proof)
	}
	return proofs
}

// hashes returns how often a member has been asked for its hash, according to its metrics.
func (s *servers) hashes(t *testing.T, i int) int {
	t.Helper()
	answer, err := http.Get("http://" + s.address(i, 2379) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`grpc_server_started_total\{grpc_method="HashKV".*\} (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not explain how often it was asked", pod(i))
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestProofRetriesUnresponsiveMember checks that a member that does not respond at first is asked again.
func TestProofRetriesUnresponsiveMember(t *testing.T) {
	s, hash := oneDiffers(t)
	s.freeze(pod(2))
	proofs := s.proving(t.Context(), newClients(t), hash, pod(2))
	s.thaw(pod(2))
	if proof := <-proofs; !slices.Equal(proof.By, []string{pod(0), pod(2)}) || proof.Why != "" {
		t.Errorf("%+v", proof)
	}
}

// TestProofStopsWaiting checks that Prove stops when a quorum becomes impossible, when its patience ends, or when it is
// canceled. Members that have responded are not asked again.
func TestProofStopsWaiting(t *testing.T) {
	s, hash := oneDiffers(t)
	wrong := hash
	wrong.Sum++
	forever := newClients(t)
	forever.Patience = time.Hour
	if proof := forever.Prove(t.Context(), s.cluster(3), wrong); len(proof.Differs) != 3 || proof.Why == "" {
		t.Errorf("all differ: %+v", proof)
	}
	s.kill(pod(2))
	if proof := forever.Prove(t.Context(), s.cluster(3), wrong); len(proof.Differs) != 2 || proof.Why == "" {
		t.Errorf("most differ: %+v", proof)
	}

	impatient := newClients(t)
	impatient.Patience = 3 * time.Second
	before := [2]int{s.hashes(t, 0), s.hashes(t, 1)}
	started := time.Now()
	proof := impatient.Prove(t.Context(), s.cluster(3), hash)
	if took := time.Since(started); took < impatient.Patience || took > 3*impatient.Patience {
		t.Errorf("Prove took %s", took)
	}
	if !slices.Equal(proof.By, []string{pod(0)}) || proof.Why != "1 of 3 voters hold the same data; a-2: connection refused" {
		t.Errorf("one member is down: %+v", proof)
	}
	if after := [2]int{s.hashes(t, 0), s.hashes(t, 1)}; after != [2]int{before[0] + 1, before[1] + 1} {
		t.Errorf("responding members were asked for %v hashes, %v before", after, before)
	}

	ctx, cancel := context.WithCancel(t.Context())
	proofs := s.proving(ctx, forever, hash, pod(2))
	cancel()
	if proof := <-proofs; proof.Why == "" {
		t.Errorf("canceled: %+v", proof)
	}
}

// TestProofWaitsForQuorum checks that Prove keeps asking while the membership is unknown, because quorum may return at
// any moment.
func TestProofWaitsForQuorum(t *testing.T) {
	s, hash := oneDiffers(t)
	s.freeze(pod(1))
	s.freeze(pod(2))
	proofs := s.proving(t.Context(), newClients(t), hash, pod(2))
	s.thaw(pod(2))
	if proof := <-proofs; !slices.Equal(proof.By, []string{pod(0), pod(2)}) || proof.Why != "" {
		t.Errorf("%+v", proof)
	}
}

// TestRealRestore stores a backup, reads it back, and starts etcd from the restored data.
func TestRealRestore(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		clients := newClients(t)
		answer := eventually(t, clients, s.cluster(1), "a responding member", allAnswer(1))
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
		taken, err := backup.Take(t.Context(), clients.Source(s.cluster(1)), o)
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
			t.Errorf("the restored member does not accept writes: %v", err)
		}
	})
}

func openDirectory(t *testing.T) store.Bucket {
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.Options{})
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

// TestDamagedSnapshotFilesAreReported checks that invalid and damaged snapshots cause specific errors.
func TestDamagedSnapshotFilesAreReported(t *testing.T) {
	s := form(t, binaries(t)[0], nil, 1)
	clients := newClients(t)
	eventually(t, clients, s.cluster(1), "a responding member", allAnswer(1))
	taken, err := backup.Take(t.Context(), clients.Source(s.cluster(1)), order(t))
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
		"intact":                     {whole, nil},
		"missing the last 512 bytes": {whole[:len(whole)-512], snapshot.ErrChecksum},
		"missing the last byte":      {whole[:len(whole)-1], snapshot.ErrTruncated},
		"empty":                      {nil, snapshot.ErrTruncated},
		"one bit flipped":            {flipped, snapshot.ErrChecksum},
	} {
		file := filepath.Join(t.TempDir(), "s.db")
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkFile(file); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkFile reads a whole file and verifies the checksum at its end.
func checkFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	trailer := snapshot.NewTrailer()
	if _, err := io.Copy(trailer, file); err != nil {
		return err
	}
	return trailer.Check()
}
