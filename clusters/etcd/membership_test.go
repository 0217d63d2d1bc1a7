package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestDowngradeIsReadFromNewerMembers checks that a downgrade is read from newer members, because etcd 3.5 does not
// report a downgrade even if it knows about one.
func TestDowngradeIsReadFromNewerMembers(t *testing.T) {
	older := reply{status: &clientv3.StatusResponse{Version: "3.5.35", Leader: 1}}
	newer := reply{status: &clientv3.StatusResponse{Version: "3.6.16", Leader: 1, DowngradeInfo: &etcdserverpb.DowngradeInfo{Enabled: true, TargetVersion: "3.5.0"}}}
	ended := reply{status: &clientv3.StatusResponse{Version: "3.6.16", Leader: 1, DowngradeInfo: &etcdserverpb.DowngradeInfo{}}}
	alone := reply{status: &clientv3.StatusResponse{Version: "3.6.16", DowngradeInfo: newer.status.DowngradeInfo}}
	for what, c := range map[string]struct {
		replies []reply
		want    string
	}{
		"no replies":                          {nil, ""},
		"only a 3.5 member":                   {[]reply{older}, ""},
		"a 3.5 and a 3.6 member":              {[]reply{older, newer}, "3.5"},
		"first 3.6 reply without a downgrade": {[]reply{older, ended, newer}, ""},
		"only a member without a leader":      {[]reply{alone}, ""},
		"after a member without a leader":     {[]reply{alone, newer}, "3.5"},
	} {
		if got := downgrade(c.replies); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
