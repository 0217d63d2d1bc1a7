package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/report"
)

// Before is what is on record of a cluster: the name of the source that declared it last, empty if
// none has, and whether it is held although that source no longer declares it.
type Before struct {
	Source string
	Held   bool
}

// Settled is what is declared once it is clear who declares each cluster. One that was declared by
// a source of this run is that source's: until it is read and lets it go, what others say of the
// cluster is a problem of theirs and holds up nothing. A cluster that several sources declare and
// none has declared before is contested: which is meant cannot be known.
func (d Desired) Settled(before func(cluster string) Before) Desired {
	claims := d.claims()
	keeps := map[string]string{} // by cluster, the source that keeps it
	for _, cluster := range slices.Sorted(maps.Keys(claims)) {
		was := before(cluster)
		switch {
		case d.mayDeclare(was, claims[cluster]):
			keeps[cluster] = was.Source
		case len(claims[cluster]) > 1:
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

// counted are the declarations that count, and the problems with those that do not.
func (d Desired) counted(
	problems []report.Problem, claims map[string][]claim, keeps map[string]string,
) ([]Declaration, []report.Problem) {
	var declared []Declaration
	for _, c := range d.Clusters {
		cluster := c.key()
		keeper, kept := keeps[cluster]
		switch {
		case slices.Contains(d.Contested, cluster):
			problems = append(problems, c.lost(fmt.Sprintf("the cluster %s is declared by another source too", cluster),
				otherThan(c.Where.Source, claims[cluster])))
		case kept && keeper != c.Source:
			problems = append(problems,
				c.lost(fmt.Sprintf("the cluster %s is another source's, which has not let it go", cluster),
					d.labelOf(keeper)))
		default:
			declared = append(declared, c)
		}
	}
	return declared, problems
}

// claim is that a source, by its name and as reports call it, says something of a cluster.
type claim struct{ place, label string }

// claims are what the sources say of each cluster, well or badly. One that is given twice makes
// two.
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

// mayDeclare reports whether a source of this run declares the cluster that it declared before, or
// may do so: it could not be read, not all of it was understood, or nobody has confirmed that it
// let the cluster go.
func (d Desired) mayDeclare(was Before, claims []claim) bool {
	owner := was.Source
	place, ours := d.Place(owner)
	if !ours {
		return false
	}
	own := 0
	for _, c := range claims {
		if c.place == owner {
			own++
		}
	}
	if own > 0 {
		return own == 1
	}
	return was.Held || place.Unread != nil ||
		slices.ContainsFunc(d.Problems, func(p report.Problem) bool { return p.Place == owner && p.Cluster == "" })
}

// labelOf is what reports call a place.
func (d Desired) labelOf(name string) string {
	p, _ := d.Place(name)
	return cmp.Or(p.Label, name)
}

// otherThan is the first of the claims that is by another source, as reports call it.
func otherThan(label string, claims []claim) string {
	for _, c := range claims {
		if c.label != label {
			return c.label
		}
	}
	return ""
}

// key is namespace/name of what is declared.
func (c Declaration) key() string { return c.Cluster.Namespace + "/" + c.Cluster.Name }

// lost is the problem of a declaration that does not count because of what another source declares.
// What that one is called is for reports alone.
func (c Declaration) lost(message, beside string) report.Problem {
	p := c.Where
	p.Place, p.Cluster = c.Source, c.key()
	p.Message, p.Beside, p.Foreign = message, beside, true
	return p
}
