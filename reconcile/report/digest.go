package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile/decide"
)

// planned is the part of a plan that is approved for one cluster.
type planned struct {
	Kubernetes string `json:",omitempty"`
	Cluster    string
	// Token and ID distinguish the cluster from other clusters with the same name. They are empty before the bootstrap.
	Token string
	ID    decide.ID
	// Declared is the declaration that the steps are based on. It is included because the texts of the steps omit
	// options, images, and the backup to restore.
	Declared decide.Declared
	Steps    []string
	Open     bool
	End      string
}

// Unversioned reports whether a source has no revision, so that its files may have changed.
func (r Report) Unversioned() bool {
	return slices.Contains(strings.Fields(r.Revision), revision.Directory)
}

// Digest returns the digest of a plan, as sha256:HEX. It covers the revision, and the declaration and planned actions
// of each cluster: two plans with the same digest execute the same actions on the same clusters. The digest is empty if
// nothing needs to be done, or if the revision does not identify the files that were read. It is also empty if nothing
// was observed, because the state of the clusters is then only assumed.
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
	// The order of the Kubernetes clusters is irrelevant.
	slices.SortStableFunc(all, func(a, b planned) int { return strings.Compare(a.Kubernetes, b.Kubernetes) })
	text, err := json.Marshal(struct {
		Revision string
		Clusters []planned
	}{r.Revision, all})
	if err != nil {
		panic(fmt.Sprintf("encode a plan: %v", err)) // plain data can always be encoded
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
