package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// planned is what is approved with a plan of one cluster.
type planned struct {
	Cluster string
	// Token and ID tell the cluster from another one of its name; those of one that is yet to be founded are empty.
	Token string
	ID    decide.ID
	Steps []string
	Open  bool
	End   string
}

// Digest of a plan, as sha256:HEX: of its revision, and of the actions that lie before each cluster. Two plans of the
// same digest do the same, to the same clusters. It is empty where nothing is to be done, and where nothing was
// observed: the clusters that it would be about are made up.
func (r Report) Digest() string {
	var all []planned
	for _, c := range r.Clusters {
		if c.Road == nil || len(c.Road.Steps) == 0 {
			continue
		}
		p := planned{Cluster: c.Key(), Token: c.State.Record.Token, ID: c.State.Record.ClusterID, Open: c.Road.Open,
			End: fmt.Sprintf("%s %s", c.Road.End.Verdict, c.Road.End.Rule)}
		for _, step := range c.Road.Steps {
			p.Steps = append(p.Steps, step.What)
		}
		all = append(all, p)
	}
	if len(all) == 0 || !r.Planned || r.Compared != nil {
		return ""
	}
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
