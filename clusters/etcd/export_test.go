package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/reconcile/decide"
)

// Age makes all connections appear to have been unused for an additional duration.
func (c *Clients) Age(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.open {
		client.lastUsed = client.lastUsed.Add(-by)
	}
}

// liar is a member that returns the same response to every hash request, or an error if the response is nil.
type liar struct {
	clientv3.Maintenance
	answer *etcdserverpb.HashKVResponse
}

func (l liar) HashKV(context.Context, string, int64) (*clientv3.HashKVResponse, error) {
	if l.answer == nil {
		return nil, errors.New("etcdserver: mvcc: required revision is a future one")
	}
	return (*clientv3.HashKVResponse)(l.answer), nil
}

// HashOf returns the hash derived from a member's response for a revision, or the reason why the response is rejected.
func HashOf(ctx context.Context, clusterID, memberID uint64, revision int64, answer *etcdserverpb.HashKVResponse) (decide.Hash, string) {
	status := &clientv3.StatusResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: clusterID, MemberId: memberID, Revision: revision}}
	replies := []reply{{pod: "a-0", client: &client{Maintenance: liar{answer: answer}}, status: status}}
	m := decide.Membership{ClusterID: decide.ID(clusterID), Members: []decide.Member{{ID: decide.ID(memberID), Answers: true, Revision: revision}}}
	(&Clients{}).hash(ctx, &m, replies)
	return m.Members[0].Hash, m.Members[0].HashWhy
}
