package targets

import (
	"errors"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// refusing returns a policy that refuses one version, as a real policy would refuse an image.
func refusing(version string) reconcile.Policy {
	return func(spec v1alpha1.EtcdClusterSpec) []string {
		if spec.Version != version {
			return nil
		}
		return []string{"image: " + version + " is not allowed"}
	}
}

// TestPolicyAppliesToEverySpec checks that the policy applies to every spec from which objects are created. This
// includes declarations that the source reader should have rejected, custom resources that are the source, and the last
// applied spec, which may have been allowed earlier or changed manually.
func TestPolicyAppliesToEverySpec(t *testing.T) {
	const shop, fleet = "https://host/shop.git", "https://host/fleet.git"
	const refused = "image: 3.5.30 is not allowed"
	const unknown = "no source of this run declared the last applied state, and at least one source that may declare clusters in this namespace does not allow " +
		"its image. Declare the cluster, or run with the policy of the source that declares it"
	unread := errors.New("no answer")
	tests := []struct {
		name string
		// by is the source that last declared ns/a at 3.5.30.
		by       string
		declared []reconcile.Declaration
		change   func(*reconcile.Desired)
		said     string
		want     string
	}{
		{name: "declared with a refused image", by: shop, declared: []reconcile.Declaration{declare("ns/a", "3.5.30")}, want: refused},
		{name: "declared with an allowed image", by: shop, declared: []reconcile.Declaration{declare("ns/a", "3.6.16")}},
		{name: "source unread", by: shop, change: func(d *reconcile.Desired) { d.Sources[0].Unread = unread }, want: refused},
		{name: "source unread, image allowed", by: fleet, change: func(d *reconcile.Desired) { d.Sources[1].Unread = unread }},
		{name: "held", by: shop, want: refused},
		{name: "orphan", by: shop, said: "the source no longer declares it"},
		{name: "manifest is invalid", by: shop, change: func(d *reconcile.Desired) {
			d.Problems = []report.Problem{{File: "a.yaml", Message: "bad", Cluster: "ns/a", Place: shop}}
		}, want: "a.yaml: bad"},
		{name: "declared by another run", by: "https://host/other.git", declared: []reconcile.Declaration{declare("ns/b", "3.6.16")}, want: unknown},
		{name: "source unknown", change: func(d *reconcile.Desired) { d.Sources[1].Unread = unread }, want: unknown},
		{name: "source unknown, one source for the namespace", change: func(d *reconcile.Desired) {
			d.Sources[1].Unread, d.Sources[0].Namespaces = unread, []string{"elsewhere"}
		}},
		{name: "source unknown, one source configured", change: func(d *reconcile.Desired) {
			d.Sources = d.Sources[:1]
			d.Sources[0].Unread = unread
		}, want: refused},
		{name: "custom resource is the source", by: shop, change: func(d *reconcile.Desired) {
			*d = reconcile.Desired{Live: true, Refuses: refusing("3.5.30")}
		}, want: refused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			there(owned, "ns/a", "3.5.30", "c1", test.said)
			owned.At("ns", "a").Custom.Status.DeclaredSource = test.by
			desired := reconcile.Desired{
				Revision: "r", Clusters: test.declared,
				Sources: []reconcile.SourceState{{Name: shop, Revision: "r", Refuses: refusing("3.5.30")}, {Name: fleet, Revision: "r", Refuses: refusing("3.7.0")}},
			}
			for i := range desired.Clusters {
				desired.Clusters[i].Source = shop
			}
			if test.change != nil {
				test.change(&desired)
			}
			got := "there is no target"
			for _, target := range first(Of(desired, owned)) {
				if target.Key().String() == "ns/a" {
					got = strings.Join(policyProblems(target.Problems), "; ")
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestIneffectiveRestoreIsNotRefused checks that a field that no longer has an effect does not cause a refusal.
func TestIneffectiveRestoreIsNotRefused(t *testing.T) {
	refuses := func(spec v1alpha1.EtcdClusterSpec) []string {
		if spec.Restore == nil {
			return nil
		}
		return []string{"refused"}
	}
	for id, want := range map[string]int{"": 1, "c1": 0} {
		owned := inventory.ByCluster{}
		there(owned, "ns/a", "3.6.16", "c1", "")
		owned.At("ns", "a").Custom.Status.ClusterID = id
		declared := declare("ns/a", "3.6.16")
		declared.Source, declared.Cluster.Spec.Restore = shop, &v1alpha1.RestoreSpec{}
		desired := reconcile.Desired{Revision: "r", Clusters: []reconcile.Declaration{declared},
			Sources: []reconcile.SourceState{{Name: shop, Revision: "r", Refuses: reconcile.Policy(refuses)}}}
		list, _ := Of(desired, owned)
		if got := policyProblems(list[0].Problems); len(got) != want {
			t.Errorf("cluster ID %q: %q", id, got)
		}
		if list[0].Cluster.Spec.Restore == nil {
			t.Error("the declaration was changed")
		}
	}
}

// TestUnknownSourceNamesTheFlag checks that, if the source of a cluster is unknown, the refusal names the flag that the
// run may lack.
func TestUnknownSourceNamesTheFlag(t *testing.T) {
	for field, want := range map[string]string{
		"spec.backup.to": ", such as --allow-backup-destination", "spec.adopt.endpoints[0]": "", "spec.image.repository": "",
	} {
		if got := flagFor(field); got != want {
			t.Errorf("%s: %q", field, got)
		}
	}
}

// TestRefusalsAreLimited checks that the list of reported refusals is limited.
func TestRefusalsAreLimited(t *testing.T) {
	many := reconcile.Policy(func(v1alpha1.EtcdClusterSpec) []string { return strings.Split(strings.Repeat("x", 500), "") })
	got := refusalsOf(v1alpha1.EtcdCluster{}, "", reconcile.Desired{Live: true, Refuses: many})
	if len(got) != mostRefusals+1 || got[mostRefusals] != "and 490 more" {
		t.Errorf("%q", got)
	}
}

// policyProblems returns problems without those that exist only because the tests use short declarations.
func policyProblems(problems []string) []string {
	var list []string
	for _, p := range problems {
		if !strings.HasPrefix(p, "spec") {
			list = append(list, p)
		}
	}
	return list
}

// TestRestoresNeedAnImage checks that a cluster that is to be restored from a backup requires a backup image until it
// has formed.
func TestRestoresNeedAnImage(t *testing.T) {
	declared := declare("ns/a", "3.6.16")
	declared.Cluster.Spec.Restore = &v1alpha1.RestoreSpec{}
	desired := reconcile.Desired{Clusters: []reconcile.Declaration{declared}}
	for _, test := range []struct {
		name, image, id string
		live, want      bool
	}{
		{name: "new cluster", want: true},
		{name: "new cluster, with an image", image: "quorate:v1"},
		{name: "restore has started", live: true, want: true},
		{name: "cluster has formed", live: true, id: "c1"},
	} {
		owned := inventory.ByCluster{}
		if test.live {
			there(owned, "ns/a", "3.6.16", "c1", "")
			owned.At("ns", "a").Custom.Status.ClusterID = test.id
		}
		list, _ := Of(desired, owned)
		RefuseBackups(list, test.image, owned, desired)
		if got := strings.Contains(strings.Join(list[0].Problems, "; "), "spec.restore: this run does not set --backup-image"); got != test.want {
			t.Errorf("%s: %q", test.name, list[0].Problems)
		}
	}
}

// TestBackupsNeedAnImage checks that a cluster with backups requires a backup image, whatever the origin of its
// declaration.
func TestBackupsNeedAnImage(t *testing.T) {
	backed := func(d reconcile.Declaration) reconcile.Declaration {
		d.Cluster.Spec.Backup = &v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC"}
		return d
	}
	const none = "spec.backup: this run does not set --backup-image"
	for _, test := range []struct {
		name, image, said string
		desired           reconcile.Desired
		live, want        bool
	}{
		{name: "declared", desired: reconcile.Desired{Clusters: []reconcile.Declaration{backed(declare("ns/a", "3.6.16"))}}, want: true},
		{name: "declared, with an image", image: "quorate:v1", desired: reconcile.Desired{Clusters: []reconcile.Declaration{backed(declare("ns/a", "3.6.16"))}}},
		{name: "declared without backups", desired: reconcile.Desired{Clusters: []reconcile.Declaration{declare("ns/a", "3.6.16")}}},
		{name: "custom resource is the source", live: true, desired: reconcile.Desired{Live: true}, want: true},
		{name: "source not queried", live: true, desired: reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked}},
		{name: "orphan", live: true, said: "the source no longer declares it"},
		{name: "source unread", live: true, desired: reconcile.Desired{Unread: errors.New("no answer")}, want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			if test.live {
				there(owned, "ns/a", "3.6.16", "c1", test.said)
				owned.At("ns", "a").Custom.Spec.Backup = backed(reconcile.Declaration{}).Cluster.Spec.Backup
			}
			list, _ := Of(test.desired, owned)
			RefuseBackups(list, test.image, owned, test.desired)
			if len(list) != 1 {
				t.Fatalf("%d targets", len(list))
			}
			if got := strings.Contains(strings.Join(list[0].Problems, "; "), none); got != test.want {
				t.Errorf("%q", list[0].Problems)
			}
		})
	}
}

// TestBackupsAreChecked checks that backup settings that the EtcdCluster definition cannot validate are validated
// before use, even if the custom resources are the source.
func TestBackupsAreChecked(t *testing.T) {
	for _, desired := range []reconcile.Desired{{Live: true}, {Clusters: []reconcile.Declaration{declare("ns/a", "3.6.16")}}} {
		owned := inventory.ByCluster{}
		there(owned, "ns/a", "3.6.16", "c1", "")
		never := &v1alpha1.BackupSpec{Schedule: "0 0 31 2 *", TimeZone: "Etc/UTC"}
		owned.At("ns", "a").Custom.Spec.Backup = never
		for i := range desired.Clusters {
			desired.Clusters[i].Cluster.Spec.Backup = never
		}
		list, _ := Of(desired, owned)
		if got := strings.Join(list[0].Problems, "; "); !strings.Contains(got, `spec.backup.schedule: "0 0 31 2 *" never matches`) {
			t.Errorf("%q", got)
		}
	}
}

// TestQuorateServiceAccountIsRefused checks that pods may not use Quorate's own ServiceAccount, which would give them
// all of Quorate's rights in the namespace.
func TestQuorateServiceAccountIsRefused(t *testing.T) {
	to := v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{}, ServiceAccountName: "quorate"}
	declared := declare("ns/a", "3.6.16")
	declared.Cluster.Spec.Backup, declared.Cluster.Spec.Restore = &v1alpha1.BackupSpec{To: to}, &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{BackupDestination: to}}
	declared.Cluster.Spec.Recovery = &v1alpha1.RecoverySpec{Backup: &v1alpha1.RecoveryBackup{From: to}}
	desired := reconcile.Desired{Clusters: []reconcile.Declaration{declared}}
	for user, want := range map[string]int{
		"system:serviceaccount:ns:quorate": 3, "system:serviceaccount:ns:backup": 0, "system:serviceaccount:other:quorate": 0,
		"quorate": 0, "": 0, "system:serviceaccount:ns:": 0,
	} {
		list, _ := Of(desired, inventory.ByCluster{})
		RefuseOwnAccounts(list, func(namespace string) string {
			if namespace != "ns" {
				t.Errorf("asked for %s", namespace)
			}
			return user
		}, inventory.ByCluster{}, desired)
		if got := strings.Count(strings.Join(list[0].Problems, "; "), `serviceAccountName: Quorate itself uses ServiceAccount "quorate"`); got != want {
			t.Errorf("%q: %q", user, list[0].Problems)
		}
	}
}
