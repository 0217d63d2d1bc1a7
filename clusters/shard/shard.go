// Package shard divides clusters among processes that do not communicate with each other. The shard of a cluster
// depends only on its name.
package shard

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"
)

// Most is the maximum number of shards.
const Most = 1000

// Shard is a subset of all clusters. The zero value contains every cluster.
type Shard struct {
	// Index is the number of this shard, starting at 0, and Of is the number of shards.
	Index, Of int
}

// Parse parses a shard in the format of String.
func Parse(text string) (Shard, error) {
	index, of, found := strings.Cut(text, "/")
	i, errIndex := strconv.Atoi(index)
	n, errOf := strconv.Atoi(of)
	if !found || errors.Join(errIndex, errOf) != nil || i < 0 || i >= n || n > Most {
		return Shard{}, errors.New("expected i/n, such as 0/4: the shard number, starting at 0, and the number of " +
			"shards, up to 1000")
	}
	return Shard{i, n}, nil
}

// String returns i/n, or "" for all clusters.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return strconv.Itoa(s.Index) + "/" + strconv.Itoa(s.Of)
}

// IsPart reports whether other shards exist.
func (s Shard) IsPart() bool { return s.Of > 1 }

// Owns reports whether a cluster, given as namespace/name, is in this shard. Each cluster is in exactly one shard: the
// shard with the highest hash for the cluster. An added shard therefore takes clusters evenly from all others, and no
// cluster moves between existing shards.
func (s Shard) Owns(cluster string) bool {
	if !s.IsPart() {
		return true
	}
	owner, highest := 0, []byte(nil)
	for i := range s.Of {
		number := sha256.Sum256([]byte(cluster + "#" + strconv.Itoa(i)))
		if bytes.Compare(number[:], highest) > 0 {
			owner, highest = i, number[:]
		}
	}
	return owner == s.Index
}
