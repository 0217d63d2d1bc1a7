package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// To compute a hash, a member scans its whole database, and does not apply changes meanwhile. Members are therefore
// asked only if there is reason to doubt their data, or if the last comparison was long ago. The timeout grows with the
// size of the database, up to hashTimeoutMax. All hashes together take at most half of the pass's remaining time, so
// that a slow member does not prevent a decision.
const (
	hashTimeout    = 5 * time.Second
	hashPerGiB     = 20 * time.Second
	hashTimeoutMax = time.Minute
)

// hashRounds is the maximum number of attempts to get comparable hashes. hashPause is the pause between attempts, which
// gives a compaction time to reach all members.
const (
	hashRounds = 4
	hashPause  = 100 * time.Millisecond
)

// hash fills in the hashes of the responding voters, all at the same revision: the oldest current revision of any
// voter, or a newer one if a voter has compacted it. A hash that does not arrive within hashTimeoutMax remains unknown,
// with a reason.
func (c *Clients) hash(ctx context.Context, m *decide.Membership, replies []reply) {
	limit := hashTimeoutMax
	if end, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit.Round(time.Second)))
	defer cancel()
	var asked []*decide.Member
	var revisions []int64
	for i := range m.Members {
		if member := &m.Members[i]; member.Answers && !member.Learner && member.Revision > 0 {
			asked, revisions = append(asked, member), append(revisions, member.Revision)
		}
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	for range hashRounds {
		if len(revisions) == 0 {
			return
		}
		compacted := c.hashAt(ctx, revisions[0], uint64(m.ClusterID), asked, replies)
		switch {
		case compacted && len(revisions) > 1:
			revisions = revisions[1:]
		case samePoint(asked):
			return
		default:
			select {
			case <-ctx.Done():
				return
			case <-time.After(hashPause):
			}
		}
	}
}

// hashAt asks the members in asked for the hash at a revision, in parallel, and reports whether any of them has
// compacted that revision.
func (c *Clients) hashAt(
	ctx context.Context, revision int64, clusterID uint64, asked []*decide.Member, replies []reply,
) (compacted bool) {
	var asking panics.Group
	var mu sync.Mutex
	for _, member := range asked {
		r := replyOf(uint64(member.ID), clusterID, replies)
		if r == nil {
			continue
		}
		asking.Go(func() {
			hash, err := hashFrom(ctx, r, revision)
			mu.Lock()
			defer mu.Unlock()
			member.Hash, member.HashWhy = hash, ""
			if err != nil {
				member.HashWhy = reason(err)
			}
			compacted = compacted || errors.Is(err, rpctypes.ErrCompacted)
		})
	}
	asking.Wait()
	return compacted
}

// samePoint reports whether all known hashes can already be compared, so that asking again is useless.
func samePoint(asked []*decide.Member) bool {
	points := map[[2]int64]bool{}
	for _, member := range asked {
		if h := member.Hash; h.Known() {
			points[[2]int64{h.Revision, h.CompactRevision}] = true
		}
	}
	return len(points) < 2
}

// hashFrom asks one member for the hash at a revision. The response must identify the same member and the same
// revision. Before 3.6, the response does not contain the revision.
func hashFrom(ctx context.Context, r *reply, revision int64) (decide.Hash, error) {
	return hashWithin(ctx, r, revision, hashTime(r.status.DbSize))
}

func hashWithin(ctx context.Context, r *reply, revision int64, timeout time.Duration) (decide.Hash, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no response within %s", timeout))
	defer cancel()
	var answer *clientv3.HashKVResponse
	answer, err := r.client.HashKV(ctx, "", revision)
	switch {
	case err != nil:
		return decide.Hash{}, cause(ctx, err)
	case !r.is(answer.Header):
		return decide.Hash{}, errAnother
	case answer.HashRevision != 0 && answer.HashRevision != revision || answer.CompactRevision > revision:
		return decide.Hash{}, fmt.Errorf("its response is not for revision %d", revision)
	}
	return decide.Hash{Revision: revision, CompactRevision: answer.CompactRevision, Sum: answer.Hash}, nil
}

// hashTime returns the timeout for hashing a database of size bytes.
func hashTime(size int64) time.Duration { return min(hashTimeoutMax, unboundedHashTime(size)) }

func unboundedHashTime(size int64) time.Duration { return timeFor(size, hashTimeout, hashPerGiB) }

// timeFor returns the timeout for processing size bytes of a database: least, plus perGiB for each GiB.
func timeFor(size int64, least, perGiB time.Duration) time.Duration {
	const largest = 1 << 40 // the reported size is unbounded
	return least + time.Duration(min(max(0, size), largest)>>20)*perGiB/1024
}
