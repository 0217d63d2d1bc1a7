package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/maphash"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// changed are the keys that changed after the last compaction, by their hashes, and whether the
// newest change of each deleted it. Two keys of one hash would yield another sum than the members
// do: a backup that is not proven, not one that is wrongly so.
type changed struct {
	seed    maphash.Seed
	deleted map[uint64]bool
}

// hashKV is what members answer to HashKV at the newest revision (etcd's storage/mvcc/hash.go): the
// CRC-32C of all revisions, without those that a compaction at that revision would drop. Members
// keep an index of all keys for that; here, a compaction that is finished has left one revision of
// each key, so that those that changed since are enough to know.
func hashKV(tx *bolt.Tx, revision, compacted int64) (uint32, error) {
	if mainOf(value(tx, metaBucket, finished)) != compacted {
		return 0, errUnderWay
	}
	keys := tx.Bucket(keyBucket)
	since, err := changedSince(keys, compacted)
	if err != nil {
		return 0, err
	}
	dropsNone, err := nothingLives(keys, since, compacted)
	if err != nil {
		return 0, err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write(keyBucket)
	err = keys.ForEach(func(k, v []byte) error {
		if mainOf(k) > revision || isTombstone(k) && mainOf(k) == compacted {
			return nil
		}
		if mainOf(k) <= compacted && !dropsNone {
			if replaced, err := since.holds(v); err != nil || replaced || isTombstone(k) {
				return err
			}
		}
		sum.Write(k)
		sum.Write(v)
		return nil
	})
	return sum.Sum32(), err
}

// changedSince reads the changes after a compaction.
func changedSince(keys *bolt.Bucket, compacted int64) (changed, error) {
	since := changed{maphash.MakeSeed(), map[uint64]bool{}}
	first := binary.BigEndian.AppendUint64(nil, uint64(compacted)+1)
	c := keys.Cursor()
	for k, v := c.Seek(first); k != nil; k, v = c.Next() {
		name, err := keyOf(v)
		if err != nil {
			return changed{}, err
		}
		since.deleted[maphash.Bytes(since.seed, name)] = isTombstone(k)
	}
	return since, nil
}

func (c changed) holds(v []byte) (bool, error) {
	name, err := keyOf(v)
	if err != nil {
		return false, err
	}
	_, is := c.deleted[maphash.Bytes(c.seed, name)]
	return is, nil
}

// nothingLives reports whether no key is left at the newest revision. Members then find nothing to
// keep, and take that for no compaction.
func nothingLives(keys *bolt.Bucket, since changed, compacted int64) (bool, error) {
	for _, deleted := range since.deleted {
		if !deleted {
			return false, nil
		}
	}
	c := keys.Cursor()
	for k, v := c.First(); k != nil && mainOf(k) <= compacted; k, v = c.Next() {
		replaced, err := since.holds(v)
		if err != nil {
			return false, err
		}
		if !replaced && !isTombstone(k) {
			return false, nil
		}
	}
	return true, nil
}

// keyOf is the name of the key that an entry is about.
func keyOf(v []byte) ([]byte, error) {
	var kv mvccpb.KeyValue
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(v, &kv); err != nil {
		return nil, fmt.Errorf("%w: a change: %w", ErrDamaged, err)
	}
	return kv.Key, nil
}
