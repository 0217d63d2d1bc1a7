package etcd_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// binaryOf returns the newest etcd binary of a minor version.
func binaryOf(t *testing.T, minor string) string {
	for _, binary := range slices.Backward(binaries(t)) {
		if strings.HasPrefix(filepath.Base(filepath.Dir(binary)), "etcd-"+minor+".") {
			return binary
		}
	}
	t.Skipf("%s holds no etcd %s", etcdDir, minor)
	return ""
}

// TestDowngrade enables a downgrade and cancels it. etcd checks its versions every four seconds.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	for own, target := range map[string]string{"3.7": "3.6", "3.6": "3.5"} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			s := form(t, binaryOf(t, own), nil, 3)
			clients, ctx, cluster := newClients(t), t.Context(), s.cluster(3)
			eventually(t, clients, cluster, "data written for "+own, ready(own, ""))
			twice(t, "cancel nothing", func() error { return clients.CancelDowngrade(ctx, cluster) })
			checkRefused(t, clients.EnableDowngrade(ctx, cluster, "3.4"), "enable the downgrade to 3.4: invalid downgrade target version")
			twice(t, "enable what runs", func() error { return clients.EnableDowngrade(ctx, cluster, own) })

			twice(t, "enable", func() error { return clients.EnableDowngrade(ctx, cluster, target) })
			if m := clients.Observe(ctx, cluster).Membership; m.Downgrade != target {
				t.Errorf("the downgrade in progress is to %q", m.Downgrade)
			}
			eventually(t, clients, cluster, "data written for "+target, ready(target, target))
			twice(t, "enable when it is done", func() error { return clients.EnableDowngrade(ctx, cluster, target) })

			twice(t, "cancel", func() error { return clients.CancelDowngrade(ctx, cluster) })
			eventually(t, clients, cluster, "a membership without a downgrade", func(m decide.Membership) bool { return m.Known && m.Downgrade == "" })
			intime(t, "enable again", func() error { return clients.EnableDowngrade(ctx, cluster, target) })
		})
	}
}

// ready reports whether every member has written its data in the format of version, and the downgrade in progress is
// the expected one.
func ready(version, downgrade string) func(decide.Membership) bool {
	return func(m decide.Membership) bool {
		other := func(m decide.Member) bool { return m.StorageVersion != version }
		return allAnswer(3)(m) && m.Downgrade == downgrade && !slices.ContainsFunc(m.Members, other)
	}
}

// TestCancelDowngradeWithEtcd35 checks that etcd 3.5 does not report downgrades, and that canceling a downgrade
// succeeds if none is in progress.
func TestCancelDowngradeWithEtcd35(t *testing.T) {
	t.Parallel()
	s := form(t, binaryOf(t, "3.5"), nil, 1)
	clients := newClients(t)
	eventually(t, clients, s.cluster(1), "one responding member", allAnswer(1))
	twice(t, "cancel nothing", func() error { return clients.CancelDowngrade(t.Context(), s.cluster(1)) })
}
