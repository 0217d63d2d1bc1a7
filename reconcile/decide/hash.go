package decide

import "fmt"

// Hash is what etcd makes of all that a member's data hold at one point (HashKV). Two say something
// about each other only if they are of the same point: of the same revision, and with the same
// history compacted away. The zero Hash is that of nobody: it is not known.
type Hash struct {
	Revision        int64  `json:"revision,omitempty"`
	CompactRevision int64  `json:"compactRevision,omitempty"`
	Sum             uint32 `json:"sum,omitempty"`
}

// Known reports whether there is a hash at all.
func (h Hash) Known() bool { return h.Revision > 0 }

// differs reports whether two hashes are of the same point, and of different data.
func (h Hash) differs(other Hash) bool {
	return h.Known() && h.point() == other.point() && h.Sum != other.Sum
}

// point is what two hashes must share to be compared.
func (h Hash) point() Hash { return Hash{Revision: h.Revision, CompactRevision: h.CompactRevision} }

func (h Hash) String() string {
	return fmt.Sprintf("%08x at revision %d, compacted at %d", h.Sum, h.Revision, h.CompactRevision)
}
