package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/report"
)

// Previous is the recorded ownership of a cluster. Source is the name of the source that last declared the cluster, or
// empty if no source has. Held is set if that source no longer declares the cluster but its removal is held.
type Previous struct {
	Source string
	Held   bool
}

// ResolveOwners determines which source each cluster belongs to, and returns the resulting desired state. A cluster
// that a source of this run has declared before belongs to that source until the source is read and no longer declares
// it. Declarations of the cluster in other sources are reported as problems of those sources, and do not delay
// anything. If several sources declare a cluster that none of them has declared before, the cluster is contested,
// because it is unknown which source was intended.
func (d Desired) ResolveOwners(before func(cluster string) Previous) Desired {
	claims := d.claims()
	keeps := map[string]string{} // maps each cluster to the source that keeps it
	for _, cluster := range slices.Sorted(maps.Keys(claims)) {
		if keeper := d.keeper(before(cluster), claims[cluster]); keeper != "" {
			keeps[cluster] = keeper
		} else if len(claims[cluster]) > 1 {
			d.Contested = append(slices.Clip(d.Contested), cluster)
		}
	}
	problems := slices.Clone(d.Problems)
	for i := range problems {
		p := &problems[i]
		keeper, kept := keeps[p.Cluster]
		p.Foreign = kept && keeper != p.Place || slices.Contains(d.Contested, p.Cluster)
	}
	d.Clusters, d.Problems = d.counted(problems, claims, keeps)
	return d
}

// counted returns the declarations that take effect, and all problems, including a problem for each declaration that
// does not take effect.
func (d Desired) counted(
	problems []report.Problem, claims map[string][]claim, keeps map[string]string,
) ([]Declaration, []report.Problem) {
	var declared []Declaration
	for _, c := range d.Clusters {
		cluster := c.key()
		keeper, kept := keeps[cluster]
		switch {
		case slices.Contains(d.Contested, cluster):
			problems = append(problems, c.lost(fmt.Sprintf("cluster %s is also declared by a different source",
				cluster),
				otherThan(c.Where.Source, claims[cluster])))
		case kept && keeper != c.Source:
			problems = append(problems,
				c.lost(fmt.Sprintf("cluster %s belongs to a different source, which has not released it", cluster),
					d.labelOf(keeper)))
		default:
			declared = append(declared, c)
		}
	}
	return declared, problems
}

// claim is the name and label of a source that declares a cluster or has a problem with its declaration.
type claim struct{ source, label string }

// claims returns the claims on each cluster, valid or not. A source that declares a cluster twice has two claims.
func (d Desired) claims() map[string][]claim {
	claims := map[string][]claim{}
	for _, c := range d.Clusters {
		cluster := c.key()
		claims[cluster] = append(claims[cluster], claim{c.Source, c.Where.Source})
	}
	for _, p := range d.Problems {
		if by := (claim{p.Place, p.Source}); p.Cluster != "" && !slices.Contains(claims[p.Cluster], by) {
			claims[p.Cluster] = append(claims[p.Cluster], by)
		}
	}
	return claims
}

// keeper returns the source that previously declared the cluster, if that source is part of this run and still declares
// the cluster or is allowed to. Otherwise, it returns "". A source whose path or recorded name has changed is
// identified by its location.
func (d Desired) keeper(was Previous, claims []claim) string {
	var declares, may string
	for _, owner := range d.ownersNamed(was.Source) {
		switch claimsBy(owner.Name, claims) {
		case 0:
			if d.mayDeclare(owner, was) {
				may = cmp.Or(may, owner.Name)
			}
		case 1:
			declares = cmp.Or(declares, owner.Name)
		}
	}
	return cmp.Or(declares, may)
}

// ownersNamed returns the source recorded under this name or, if it does not exist, all sources with the same location.
func (d Desired) ownersNamed(name string) (owners []SourceState) {
	if p, ok := d.State(name); ok {
		return []SourceState{p}
	}
	for _, p := range d.Sources {
		if name != "" && SameLocation(p.Name, name) {
			owners = append(owners, p)
		}
	}
	return owners
}

// mayDeclare reports whether a source without a known declaration of a cluster may still declare it: the source could
// not be read, some of its declarations were not understood, or its removal of the cluster is held.
func (d Desired) mayDeclare(owner SourceState, was Previous) bool {
	return was.Held || owner.Unread != nil ||
		slices.ContainsFunc(d.Problems, func(p report.Problem) bool { return p.Place == owner.Name && p.Cluster == "" })
}

// claimsBy counts the claims of a source.
func claimsBy(source string, claims []claim) (n int) {
	for _, c := range claims {
		if c.source == source {
			n++
		}
	}
	return n
}

// labelOf returns the label of a source.
func (d Desired) labelOf(name string) string {
	p, _ := d.State(name)
	return cmp.Or(p.Label, name)
}

// otherThan returns the first label in claims that differs from label.
func otherThan(label string, claims []claim) string {
	for _, c := range claims {
		if c.label != label {
			return c.label
		}
	}
	return ""
}

// key returns the namespace/name of the declared cluster.
func (c Declaration) key() string { return c.Cluster.Namespace + "/" + c.Cluster.Name }

// lost returns the problem for a declaration that has no effect because another source owns the cluster. beside is the
// label of that source, for reports only.
func (c Declaration) lost(message, beside string) report.Problem {
	p := c.Where
	p.Place, p.Cluster = c.Source, c.key()
	p.Message, p.Beside, p.Foreign = message, beside, true
	return p
}
