package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// planned is what is approved with a plan of one cluster.
type planned struct {
	Kubernetes string `json:",omitempty"`
	Cluster    string
	// Token and ID tell the cluster from another one of its name; those of one that is yet to be founded are empty.
	Token string
	ID    decide.ID
	// Declared is what the steps make of it: their words leave out options, images, and what restores begin with.
	Declared decide.Declared
	Steps    []string
	Open     bool
	End      string
}

// directory is the revision of a source that has none.
const directory = "directory"

// Unversioned reports whether what was read has no revision, so that other files may be there by now.
func (r Report) Unversioned() bool { return slices.Contains(strings.Fields(r.Revision), directory) }

// Digest of a plan, as sha256:HEX: of its revision, and of what is declared of each cluster and the actions that lie
// before it. Two plans of the same digest do the same, to the same clusters. It is empty where nothing is to be done,
// where the revision does not say what was read, and where nothing was observed: the clusters that it would be about
// are made up.
func (r Report) Digest() string {
	var all []planned
	for _, c := range r.Clusters {
		if c.Road == nil || len(c.Road.Steps) == 0 {
			continue
		}
		p := planned{Kubernetes: c.Kubernetes, Cluster: c.Key(), Token: c.State.Record.Token,
			ID: c.State.Record.ClusterID, Declared: c.State.Declared, Open: c.Road.Open,
			End: fmt.Sprintf("%s %s", c.Road.End.Verdict, c.Road.End.Rule)}
		for _, step := range c.Road.Steps {
			p.Steps = append(p.Steps, step.What)
		}
		all = append(all, p)
	}
	if len(all) == 0 || !r.Planned || r.Compared != nil || r.Unversioned() {
		return ""
	}
	// The order in which Kubernetes clusters are given matters to nobody.
	slices.SortStableFunc(all, func(a, b planned) int { return strings.Compare(a.Kubernetes, b.Kubernetes) })
	text, err := json.Marshal(struct {
		Revision string
		Clusters []planned
	}{r.Revision, all})
	if err != nil {
		panic(fmt.Sprintf("encode a plan: %v", err)) // plain data: there is nothing that cannot be encoded
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
