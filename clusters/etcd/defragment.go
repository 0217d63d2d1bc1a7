package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/reconcile/decide"
)

// To defragment its database, a member copies the part in use. On very slow disks, this takes 100 seconds per GiB. If
// the member does not respond to its liveness probe for five minutes, the kubelet restarts it.
const (
	defragmentTime    = 30 * time.Second
	defragmentPerGiB  = 100 * time.Second
	defragmentTimeMax = 6 * time.Minute
)

// Defragmented is the result of a defragmentation.
type Defragmented struct {
	// Before and After are the sizes of the database file, in bytes.
	Before, After int64
	// Took is how long the member did not serve requests.
	Took time.Duration
}

// Defragment makes a member return unused space in its database to the file system. Until this is done, the member does
// not serve requests. If Defragment returns a NotYet, it has not requested the defragmentation. If it returns a
// different error, the member may still complete the defragmentation.
func (c *Clients) Defragment(ctx context.Context, cluster Cluster, id decide.ID) (done Defragmented, err error) {
	r, err := c.readerOf(ctx, cluster, id)
	if err != nil {
		return Defragmented{}, NotYet{fmt.Errorf("defragment member %s: %w", id, err)}
	}
	limit := timeToDefragment(r.status.DbSizeInUse)
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit))
	defer cancel()
	begin := time.Now()
	if _, err := r.client.Defragment(limited, ""); err != nil {
		return Defragmented{}, fmt.Errorf("defragment member %s: %w", id, shortError{cause(limited, err)})
	}
	done = Defragmented{Before: r.status.DbSize, After: r.status.DbSize, Took: time.Since(begin)}
	if now, err := c.statusOf(ctx, r); err == nil {
		done.After = now.DbSize
	}
	return done, nil
}

// readerOf returns the reply of a member that responds to reads. While a member is being defragmented, it responds to
// status requests but not to reads. A second defragmentation would only prolong this.
func (c *Clients) readerOf(ctx context.Context, cluster Cluster, id decide.ID) (*reply, error) {
	replies, m, err := c.members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	r := replyOf(uint64(id), uint64(m.ClusterID), replies)
	if r == nil {
		return nil, fmt.Errorf("it does not respond: %s", why(replies))
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	read, err := r.client.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, Serializable: true, KeysOnly: true})
	switch {
	case err != nil:
		return nil, fmt.Errorf("it does not respond to reads: %w", cause(ctx, err))
	case !r.is(read.Header):
		return nil, errAnother
	}
	return r, nil
}

// timeToDefragment returns the timeout for the defragmentation of a database with the given size in use, in bytes.
func timeToDefragment(inUse int64) time.Duration {
	const largest = 1 << 40 // the reported size is unbounded
	perGiB := time.Duration(min(max(0, inUse), largest)>>20) * defragmentPerGiB / 1024
	return min(defragmentTimeMax, defragmentTime+perGiB)
}
