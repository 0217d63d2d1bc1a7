package snapshot_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// history is the history of changes in an etcd database.
type history struct {
	revision, compacted uint64
	// stored holds the changes by revision, and newest holds the latest change of each key.
	stored, newest map[string]*mvccpb.KeyValue
}

func revisionOf(main uint64, deleted bool) string {
	key := append(binary.BigEndian.AppendUint64(nil, main), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
	if deleted {
		key = append(key, 't')
	}
	return string(key)
}

func (h *history) put(key string) {
	h.revision++
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: fmt.Append(nil, h.revision), ModRevision: int64(h.revision), Version: 1}
	if before := h.newest[key]; before != nil {
		kv.Version = before.Version + 1
	}
	h.newest[key], h.stored[revisionOf(h.revision, false)] = kv, kv
}

func (h *history) remove(key string) {
	if h.newest[key] == nil {
		return
	}
	h.revision++
	delete(h.newest, key)
	h.stored[revisionOf(h.revision, true)] = &mvccpb.KeyValue{Key: []byte(key)}
}

// compact removes deletions, and all changes that a newer change up to the current revision has replaced.
func (h *history) compact() {
	h.compacted = h.revision
	maps.DeleteFunc(h.stored, func(revision string, kv *mvccpb.KeyValue) bool {
		newest := h.newest[string(kv.Key)]
		return newest == nil || revision != revisionOf(uint64(newest.ModRevision), false)
	})
}

// hash returns a member's HashKV, computed with an index of all keys.
func (h *history) hash(t *testing.T) uint32 {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write([]byte("key"))
	for _, revision := range slices.Sorted(maps.Keys(h.stored)) {
		newest, main := h.newest[string(h.stored[revision].Key)], binary.BigEndian.Uint64([]byte(revision))
		kept := newest != nil && revision == revisionOf(uint64(newest.ModRevision), false)
		if main > h.compacted || kept || len(h.newest) == 0 {
			sum.Write([]byte(revision))
			sum.Write(marshaled(t, h.stored[revision]))
		}
	}
	return sum.Sum32()
}

func marshaled(t *testing.T, kv *mvccpb.KeyValue) []byte {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(kv)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (h *history) database(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		meta, failed := tx.CreateBucket([]byte("meta"))
		for revision, kv := range h.stored {
			err = errors.Join(err, keys.Put([]byte(revision), marshaled(t, kv)))
		}
		at := []byte(revisionOf(h.compacted, false))
		return errors.Join(err, failed, meta.Put([]byte("scheduledCompactRev"), at), meta.Put([]byte("finishedCompactRev"), at))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHashInBoundedMemory checks that the hash equals the members' hash even if only a few keys may be held in memory.
func TestHashInBoundedMemory(t *testing.T) {
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 0))
	for round := range 100 {
		h := &history{revision: 1, stored: map[string]*mvccpb.KeyValue{}, newest: map[string]*mvccpb.KeyValue{}}
		compactAt := chance.IntN(60)
		for step := range chance.IntN(60) {
			switch key := fmt.Sprint("k", chance.IntN(12)); {
			case step == compactAt:
				h.compact()
			case chance.IntN(3) == 0:
				h.remove(key)
			default:
				h.put(key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(h.newest)) {
			if round%4 == 0 {
				h.remove(key)
			}
		}
		want, path := h.hash(t), h.database(t)
		for _, most := range []int{1, 2, 5, 1 << 20} {
			before := snapshot.HoldChanged(most)
			facts, err := snapshot.Inspect(path)
			snapshot.HoldChanged(before)
			if err != nil || facts.Hash == nil || *facts.Hash != want {
				t.Fatalf("seed %d, round %d, %d keys in memory: %+v, %v, want %x", seed, round, most, facts, err, want)
			}
		}
	}
}
