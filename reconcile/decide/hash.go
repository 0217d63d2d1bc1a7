package decide

import "fmt"

// Hash is etcd's hash of all data of a member at one point (HashKV). Two hashes are comparable only at the same point:
// at the same revision, and with the same history compacted. The zero Hash means unknown.
type Hash struct {
	Revision        int64  `json:"revision,omitempty"`
	CompactRevision int64  `json:"compactRevision,omitempty"`
	Sum             uint32 `json:"sum,omitempty"`
}

// Known reports whether the hash is known.
func (h Hash) Known() bool { return h.Revision > 0 }

// differs reports whether two hashes are of different data at the same point.
func (h Hash) differs(other Hash) bool {
	return h.Known() && h.point() == other.point() && h.Sum != other.Sum
}

// point returns the revisions that two hashes must share to be comparable.
func (h Hash) point() Hash { return Hash{Revision: h.Revision, CompactRevision: h.CompactRevision} }

func (h Hash) String() string {
	return fmt.Sprintf("%08x at revision %d, compacted at %d", h.Sum, h.Revision, h.CompactRevision)
}
