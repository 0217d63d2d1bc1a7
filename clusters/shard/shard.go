// Package shard divides clusters among processes that know nothing of each other: who has which follows from the
// names alone.
package shard

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"
)

// Most is how many shards there may be.
const Most = 1000

// Shard is one part of all clusters. The zero value is all of them.
type Shard struct {
	// Index is which part it is, from 0, and Of how many parts there are.
	Index, Of int
}

// Parse reads a shard as String writes it.
func Parse(text string) (Shard, error) {
	index, of, found := strings.Cut(text, "/")
	i, errIndex := strconv.Atoi(index)
	n, errOf := strconv.Atoi(of)
	if !found || errors.Join(errIndex, errOf) != nil || i < 0 || i >= n || n > Most {
		return Shard{}, errors.New("want i/n, such as 0/4: the shard from 0 up, and how many there are, 1000 at most")
	}
	return Shard{i, n}, nil
}

// String is i/n; empty for all clusters.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return strconv.Itoa(s.Index) + "/" + strconv.Itoa(s.Of)
}

// IsPart reports whether there are clusters that may be another shard's.
func (s Shard) IsPart() bool { return s.Of > 1 }

// Owns reports whether a cluster, as namespace/name, is in this shard. Each cluster is in one of them: that which
// draws the highest number for it. So one shard more takes its clusters from all others alike, and no cluster
// changes between those.
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
