package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/internal/panics"
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
// different error, the member may still complete the defragmentation. Defragment calls begin before it sends the
// request, and does not send the request if begin returns an error.
func (c *Clients) Defragment(
	ctx context.Context, cluster Cluster, id decide.ID, begin func() error,
) (done Defragmented, err error) {
	r, err := c.readerOf(ctx, cluster, id)
	if err == nil {
		err = begin()
	}
	if err != nil {
		return Defragmented{}, NotYet{fmt.Errorf("defragment member %s: %w", id, err)}
	}
	limit := min(defragmentTimeMax, timeFor(r.status.DbSizeInUse, defragmentTime, defragmentPerGiB))
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no response within %s", limit))
	defer cancel()
	start := time.Now()
	if _, err := r.client.Defragment(limited, ""); err != nil {
		return Defragmented{}, fmt.Errorf("defragment member %s: %w", id, shortError{cause(limited, err)})
	}
	done = Defragmented{Before: r.status.DbSize, After: r.status.DbSize, Took: time.Since(start)}
	if now, err := c.statusOf(ctx, r); err == nil {
		done.After = now.DbSize
	}
	return done, nil
}

// readerOf returns a member's reply if all members respond to reads and the member does not lead other members. A
// member that is being defragmented does not respond to reads, although etcd 3.5 still responds to status requests.
func (c *Clients) readerOf(ctx context.Context, cluster Cluster, id decide.ID) (*reply, error) {
	replies, m, err := c.members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	r := replyOf(uint64(id), uint64(m.ClusterID), replies)
	switch {
	case r == nil && decide.Answering(m.Members) == len(m.Members):
		return nil, errors.New("etcd does not list the member")
	case decide.Answering(m.Members) < len(m.Members):
		return nil, fmt.Errorf("not all members respond: %s", why(replies))
	case r.leads() && len(m.Members) > 1:
		return nil, errors.New("the member is the leader")
	}
	failures := make([]error, len(m.Members))
	var reading panics.Group
	for i, member := range m.Members {
		reading.Go(func() {
			if err := c.read(ctx, replyOf(uint64(member.ID), uint64(m.ClusterID), replies)); err != nil {
				failures[i] = fmt.Errorf("%s does not respond to reads: %w", member.Name, shortError{err})
			}
		})
	}
	reading.Wait()
	return r, errors.Join(failures...)
}

// read reads a key from a member's own database.
func (c *Clients) read(ctx context.Context, r *reply) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	read, err := r.client.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, Serializable: true, KeysOnly: true})
	switch {
	case err != nil:
		return cause(ctx, err)
	case !r.is(read.Header):
		return errAnother
	}
	return nil
}
