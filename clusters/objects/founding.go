package objects

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // etcd derives its IDs this way
	"encoding/binary"
	"slices"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// FoundingID returns the cluster ID that etcd derives from the token and the peer URLs in the initial members'
// configuration files (etcd: membership.NewClusterFromURLsMap). A member that started with existing data reports the
// cluster ID in that data instead. FoundingID returns zero unless all recorded members are initial members.
func FoundingID(c *v1alpha1.EtcdCluster, r decide.Record) decide.ID {
	in := Input{Cluster: c, Record: r}
	var members []uint64
	for _, m := range r.Members {
		if m.Mode != decide.Founding {
			return 0
		}
		members = append(members, idOf([]byte(PeerURL(c, m.Ordinal)+clusterToken(in))))
	}
	if len(members) == 0 {
		return 0
	}
	slices.SortFunc(members, cmp.Compare[uint64])
	var all []byte
	for _, id := range members {
		all = binary.BigEndian.AppendUint64(all, id)
	}
	return decide.ID(idOf(all))
}

// idOf returns the first eight bytes of the SHA-1 hash of text as a number.
func idOf(text []byte) uint64 {
	sum := sha1.Sum(text) //nolint:gosec // see above
	return binary.BigEndian.Uint64(sum[:8])
}
