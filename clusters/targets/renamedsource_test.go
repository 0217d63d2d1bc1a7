package targets

import (
	"errors"
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestRenamedSourceKeepsItsClusters checks that no other source takes over the clusters of a renamed source that cannot
// be read. The name in the status changes if the path changes, or if a second branch of the repository becomes a
// source.
func TestRenamedSourceKeepsItsClusters(t *testing.T) {
	for name, source := range map[string]string{
		"a branch is added to the name": "https://host/a.git,branch=main",
		"another path":                  "https://host/a.git,path=clusters",
	} {
		for what, problems := range map[string][]report.Problem{
			"unread": nil, "with a file that is not YAML": {{Place: source, File: "x.yaml", Message: "is not valid YAML"}},
		} {
			a := reconcile.SourceState{Name: source, Revision: "main@sha1:0123456789012345678901234567890123456789"}
			if problems == nil {
				a.Unread = errors.New("the server is down")
			}
			owned := inventory.ByCluster{}
			declaredBy(owned, "https://host/a.git", "shop/x")
			d := declare("shop/x", "3.5.30")
			d.Source = "https://evil/b.git"
			d.Cluster.Spec.Image.Repository = "evil/etcd"
			desired := reconcile.Desired{Clusters: []reconcile.Declaration{d}, Problems: problems, Sources: []reconcile.SourceState{
				a, {Name: "https://evil/b.git", Revision: "main@sha1:9876543210987654321098765432109876543210"}}}
			for _, one := range Resolve(desired, owned, &Deletions{}, nil).Targets {
				if one.Source == "https://evil/b.git" || one.Cluster.Spec.Image.Repository == "evil/etcd" {
					t.Errorf("%s, %s: shop/x of a.git now belongs to %s, with image %s (problems: %q)", name, what, one.Source, one.Cluster.Spec.Image.Repository, one.Problems)
				}
			}
		}
	}
}
