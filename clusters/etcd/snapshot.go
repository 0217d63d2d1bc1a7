package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"quorate.dev/quorate/reconcile/decide"
)

// stall is how long a member may go without sending any bytes of its snapshot. Empty messages do not count, because
// etcd sends them endlessly if it cannot read its own database.
const stall = time.Minute

// Snapshot is a member's database as the member sends it.
type Snapshot struct {
	Member    string
	ClusterID decide.ID
	// Version is the member's etcd version.
	Version string
	// Revision is the last acknowledged revision at the time of the request, according to the member and a quorum.
	Revision int64
	// Size is the size of the database in bytes, as reported by the member.
	Size int64
	// Body is the snapshot file, which ends with a checksum that has not been verified.
	Body io.ReadCloser
}

// Snapshot requests the database of the best source: a voter that has caught up with all acknowledged changes,
// preferably a follower, with the smallest database. It does not use pods in except. It fails if the membership is
// unknown, because the data of a partitioned member may be old.
func (c *Clients) Snapshot(ctx context.Context, cluster Cluster, except ...string) (*Snapshot, error) {
	replies, m, err := c.members(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("request a snapshot: %w", err)
	}
	var failures []string
	for _, r := range sources(replies, m) {
		if slices.Contains(except, r.pod) {
			continue
		}
		s, err := c.snapshotFrom(ctx, r)
		if err == nil {
			s.Revision = max(s.Revision, acknowledged(m))
			return s, nil
		}
		failures = append(failures, r.pod+": "+reason(err))
	}
	if len(failures) == 0 {
		return nil, errors.New("request a snapshot: no responding voter is known to hold the right data")
	}
	return nil, fmt.Errorf("request a snapshot: %s", strings.Join(failures, "; "))
}

// CurrentRevision returns the cluster ID that a quorum reports, and the cluster's revision. The revision includes all
// changes that etcd acknowledged before CurrentRevision was called. CurrentRevision returns an error if the membership
// is unknown.
func (c *Clients) CurrentRevision(ctx context.Context, cluster Cluster) (decide.ID, int64, error) {
	replies, m, err := c.members(ctx, cluster)
	if err != nil {
		return 0, 0, fmt.Errorf("query the revision: %w", err)
	}
	var failures []string
	for _, r := range sources(replies, m) {
		now, err := c.current(ctx, r)
		if err == nil {
			return m.ClusterID, max(now.Header.Revision, acknowledged(m)), nil
		}
		failures = append(failures, r.pod+": "+reason(err))
	}
	if len(failures) == 0 {
		return 0, 0, errors.New("query the revision: no responding voter is known to hold the right data")
	}
	return 0, 0, fmt.Errorf("query the revision: %s", strings.Join(failures, "; "))
}

// ClusterID returns the cluster ID that a quorum reports.
func (c *Clients) ClusterID(ctx context.Context, cluster Cluster) (decide.ID, error) {
	_, m, err := c.members(ctx, cluster)
	if err != nil {
		return 0, fmt.Errorf("query the cluster ID: %w", err)
	}
	return m.ClusterID, nil
}

// members returns the pods' replies and the membership that a quorum confirmed.
func (c *Clients) members(ctx context.Context, cluster Cluster) ([]reply, decide.Membership, error) {
	replies, poll := c.askForList(ctx, cluster)
	if poll.list == nil {
		return nil, decide.Membership{}, fmt.Errorf("no quorum confirms the member list: %s", why(replies))
	}
	return replies, cluster.membership(poll.list, replies), nil
}

// acknowledged returns the newest revision that a quorum has reached, according to each member's own report. A single
// member that reports a revision that is too low or too high does not change the result.
func acknowledged(m decide.Membership) int64 {
	var revisions []int64
	voters := m.Voters()
	for _, voter := range voters {
		if voter.Answers {
			revisions = append(revisions, voter.Revision)
		}
	}
	slices.Sort(revisions)
	if spare := len(revisions) - decide.Quorum(len(voters)); spare >= 0 {
		return revisions[spare]
	}
	return 0
}

// sources returns the voters that may be asked for their data, best first. It omits members whose data differs
// according to etcd.
func sources(replies []reply, m decide.Membership) []*reply {
	var found []*reply
	for i := range replies {
		r := &replies[i]
		if !r.knowsLeader() || r.status.IsLearner || decide.ID(r.status.Header.ClusterId) != m.ClusterID {
			continue
		}
		known := slices.IndexFunc(m.Members, func(m decide.Member) bool { return m.ID == r.id() })
		if known >= 0 && !m.Members[known].Learner && !slices.Contains(m.Members[known].Alarms, decide.AlarmCorrupt) {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b *reply) int {
		return cmp.Or(yesFirst(!a.leads(), !b.leads()), cmp.Compare(a.status.DbSize, b.status.DbSize),
			cmp.Compare(a.pod, b.pod))
	})
	return found
}

// current returns a member's status after a linearizable read, so that the revision includes all changes that etcd had
// acknowledged before the read. It returns an error if the member has no leader.
func (c *Clients) current(ctx context.Context, r *reply) (*clientv3.StatusResponse, error) {
	if _, err := c.listFrom(clientv3.WithRequireLeader(ctx), r); err != nil {
		return nil, err
	}
	return c.statusOf(ctx, r)
}

// snapshotFrom requests a snapshot from one member, after a linearizable read. The snapshot is at least as new as the
// read, even if the member loses its leader while it sends the snapshot. snapshotFrom returns an error if the member
// has no leader.
func (c *Clients) snapshotFrom(ctx context.Context, r *reply) (*Snapshot, error) {
	now, err := c.current(ctx, r)
	if err != nil {
		return nil, err
	}
	streaming, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	stream, err := etcdserverpb.NewMaintenanceClient(r.client.conn).Snapshot(streaming, &etcdserverpb.SnapshotRequest{},
		grpc.ForceCodecV2(newChunks()))
	if err != nil {
		cancel(nil)
		return nil, cause(streaming, err)
	}
	return &Snapshot{
		Member: r.pod, ClusterID: decide.ID(now.Header.ClusterId), Version: now.Version,
		Revision: now.Header.Revision, Size: now.DbSize,
		Body: newBody(streaming, cancel, stream, r.pod, cmp.Or(c.Stall, stall)),
	}, nil
}

// body reads a snapshot stream.
type body struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stream  etcdserverpb.Maintenance_SnapshotClient
	member  string
	watch   *time.Timer
	patient time.Duration
	rest    []byte
	missing uint64 // remaining bytes, as the member reports
}

func newBody(
	ctx context.Context, cancel context.CancelCauseFunc, stream etcdserverpb.Maintenance_SnapshotClient, member string,
	patient time.Duration,
) *body {
	watch := time.AfterFunc(patient, func() { cancel(fmt.Errorf("it did not send data for %s", patient)) })
	watch.Stop()
	return &body{ctx: ctx, cancel: cancel, stream: stream, member: member, watch: watch, patient: patient}
}

// Read implements io.Reader. It returns io.EOF once the member has sent everything it announced.
func (b *body) Read(p []byte) (int, error) {
	b.watch.Reset(b.patient) // only the member is timed, not the writer of the data
	defer b.watch.Stop()
	for len(b.rest) == 0 {
		part, err := b.stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && b.missing > 0:
			return 0, fmt.Errorf("read the snapshot of %s: %d bytes are missing: %w", b.member, b.missing,
				io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		case err != nil:
			return 0, fmt.Errorf("read the snapshot of %s: %w", b.member, shortError{cause(b.ctx, err)})
		}
		b.rest, b.missing = part.Blob, part.RemainingBytes
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close ends the stream. It may be called at any time.
func (b *body) Close() error {
	b.watch.Stop()
	b.cancel(context.Canceled)
	return nil
}
