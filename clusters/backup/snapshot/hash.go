package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// maxChanged is the maximum number of changes since the compaction whose keys are held in memory, at 8 bytes each. If
// there are more, they are processed in batches, and the changes before the compaction are read once for each batch.
var maxChanged = 4 << 20

// hashKV returns the same hash as a member's HashKV at the newest revision (etcd's storage/mvcc/hash.go): the CRC-32C
// of all revisions since the last compaction, and of the earlier revisions that a compaction would keep now. Members
// use an index of all keys to find these. Here, it is enough to know which keys have changed since the last compaction,
// because a finished compaction has left only one revision of each key.
func hashKV(tx *bolt.Tx, revision, compacted int64) (uint32, error) {
	if mainOf(value(tx, metaBucket, finished)) != compacted {
		return 0, errUnderWay
	}
	keys := tx.Bucket(keyBucket)
	count, err := count(keys, compacted)
	if err != nil {
		return 0, err
	}
	var replaced bits
	if count.before > 0 {
		if replaced, err = replacedSince(keys, compacted, count.since); err != nil {
			return 0, err
		}
	}
	// If no keys exist, members have nothing to keep and act as if there had been no compaction.
	drops := func(k []byte, n int) bool { return count.living > 0 && (isTombstone(k) || replaced.has(n)) }
	sum, n := crc32.New(crc32.MakeTable(crc32.Castagnoli)), -1
	sum.Write(keyBucket)
	err = keys.ForEach(func(k, v []byte) error {
		n++
		main := mainOf(k)
		if main > revision || isTombstone(k) && main == compacted || main <= compacted && drops(k, n) {
			return nil
		}
		sum.Write(k)
		sum.Write(v)
		return nil
	})
	return sum.Sum32(), err
}

// counted is the number of changes in a database, relative to the last compaction.
type counted struct {
	// before is the number of changes up to the compaction, and since is the number of changes after it.
	before, since int
	// living is the number of keys that exist at the newest revision: the keys left by the compaction, plus the keys
	// created since, minus the keys deleted since.
	living int
}

func count(keys *bolt.Bucket, compacted int64) (c counted, err error) {
	err = keys.ForEach(func(k, v []byte) error {
		if mainOf(k) <= compacted {
			c.before++
			if !isTombstone(k) {
				c.living++
			}
			return nil
		}
		c.since++
		if isTombstone(k) {
			c.living--
			return nil
		}
		kv, err := changeIn(v)
		if kv.GetVersion() == 1 {
			c.living++
		}
		return err
	})
	return c, err
}

// replacedSince returns the indexes of the changes up to a compaction whose keys have changed since. It compares hashes
// of keys. If two keys had the same hash, the sum would differ from the members' sum, so the backup would be unproven
// but never wrongly proven.
func replacedSince(keys *bolt.Bucket, compacted int64, count int) (replaced bits, err error) {
	seed, changed := maphash.MakeSeed(), make([]uint64, 0, min(count, maxChanged))
	since := keys.Cursor()
	k, v := since.Seek(binary.BigEndian.AppendUint64(nil, uint64(compacted)+1))
	for k != nil {
		changed = changed[:0]
		for ; k != nil && len(changed) < maxChanged; k, v = since.Next() {
			kv, err := changeIn(v)
			if err != nil {
				return nil, err
			}
			changed = append(changed, maphash.Bytes(seed, kv.GetKey()))
		}
		slices.Sort(changed)
		before, n := keys.Cursor(), 0
		for k, v := before.First(); k != nil && mainOf(k) <= compacted; k, v = before.Next() {
			kv, err := changeIn(v)
			if err != nil {
				return nil, err
			}
			if _, is := slices.BinarySearch(changed, maphash.Bytes(seed, kv.GetKey())); is {
				replaced.set(n)
			}
			n++
		}
	}
	return replaced, nil
}

// bits is a set of small numbers.
type bits []uint64

func (b *bits) set(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bits) has(n int) bool { return n/64 < len(b) && b[n/64]&(1<<(n%64)) != 0 }

// changeIn decodes a change to a key.
func changeIn(v []byte) (*mvccpb.KeyValue, error) {
	var kv mvccpb.KeyValue
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(v, &kv); err != nil {
		return nil, fmt.Errorf("%w: a change: %w", ErrDamaged, err)
	}
	return &kv, nil
}
