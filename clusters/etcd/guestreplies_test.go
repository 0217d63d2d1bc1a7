package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// replyFrom returns the response of a member.
func replyFrom(pod string, endpoint bool, cluster, id, term uint64) reply {
	return reply{pod: pod, endpoint: endpoint, status: &clientv3.StatusResponse{
		Header: &etcdserverpb.ResponseHeader{ClusterId: cluster, MemberId: id}, RaftTerm: term, Leader: id}}
}

// TestPodOfAnotherClusterSilencesNoGuest checks that the guests' responses count although a pod runs old data.
func TestPodOfAnotherClusterSilencesNoGuest(t *testing.T) {
	c := Cluster{Adopted: 0xad0}
	got := c.accept([]reply{replyFrom("old-0:2379", true, 0xad0, 1, 9), replyFrom("old-1:2379", true, 0xad0, 2, 9), replyFrom("a-0", false, 0xad0, 3, 9), replyFrom("a-1", false, 0xff, 4, 2)})
	for _, r := range got {
		if r.endpoint && !r.answered() {
			t.Errorf("%s: %v", r.pod, r.err)
		}
	}
}
