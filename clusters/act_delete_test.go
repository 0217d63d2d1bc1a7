package clusters

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A member is gone once etcd lists neither it nor one of which it is not known yet where it starts.
func TestMemberGone(t *testing.T) {
	for name, test := range map[string]struct {
		also *etcdserverpb.Member
		want string
	}{
		"is gone":                    {nil, "<nil>"},
		"is there":                   {&etcdserverpb.Member{ID: 3, Name: "a-2", PeerURLs: []string{peerOf(2)}}, "etcd lists a-2 (3)"},
		"is there again":             {&etcdserverpb.Member{ID: 9, PeerURLs: []string{peerOf(2)}, IsLearner: true}, "etcd lists a-2 (9)"},
		"another is there":           {&etcdserverpb.Member{ID: 9, PeerURLs: []string{peerOf(3)}, IsLearner: true}, "<nil>"},
		"somebody else's is there":   {&etcdserverpb.Member{ID: 9, Name: "guest", PeerURLs: []string{"http://10.0.0.9:2380"}}, "<nil>"},
		"somebody has added one now": {&etcdserverpb.Member{ID: 9, PeerURLs: []string{"http://10.0.0.9:2380"}, IsLearner: true}, "etcd lists a member (9) that has not started, and that may be a-2"},
	} {
		l := newLife(t)
		l.etcd.members = l.etcd.members[:2:2]
		c := l.seen(l.old)
		if test.also != nil {
			l.etcd.members = append(l.etcd.members, test.also)
		}
		if got := fmt.Sprint(c.memberGone(t.Context(), 2)); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
