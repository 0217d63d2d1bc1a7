package report

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// FlagConfirm is the flag that confirms a removal.
const FlagConfirm = "--confirm-removals"

// Removal reports that many of a source's clusters are no longer declared, possibly by accident. They are kept as last
// applied until they are declared again or the removal is confirmed.
type Removal struct {
	// Kubernetes is the name of the Kubernetes cluster that contains the clusters, if there are several.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Source is the source that declared the clusters; empty if the source is unknown.
	Source string `json:"source,omitempty"`
	// Label is the name in reports of the source of this run that Source identifies; empty if there is no such source.
	Label string `json:"-"`
	// Revision is the revision that no longer declares the clusters, and that must be confirmed.
	Revision string `json:"revision"`
	// Clusters are the clusters that are no longer declared, as namespace/name.
	Clusters []string `json:"clusters"`
	// Of is the number of clusters of the source, declared or not.
	Of int `json:"of"`
}

// String describes the removal on one line.
func (r Removal) String() string {
	text := fmt.Sprintf("%s no longer declares %d of %s", r.Revision, len(r.Clusters), decide.Count(r.Of, "cluster"))
	if r.Source != "" {
		text += " of " + r.Source
	}
	if r.Kubernetes != "" {
		text = r.Kubernetes + ": " + text
	}
	return text + ": " + strings.Join(r.Clusters, ", ")
}

// Confirm returns the flag that confirms the removals of a revision, as one word in a shell: a revision may contain the
// name of a branch, or text from a status.
func Confirm(revision string) string {
	return FlagConfirm + "=" + printable.ShellWord(revision)
}

func writeRemovals(b *strings.Builder, removals []Removal, style Style) {
	if len(removals) == 0 {
		return
	}
	var revisions []string
	for _, r := range removals {
		style.line(b, 0, "held", r.String(), style.Bad)
		for revision := range strings.FieldsSeq(r.Revision) {
			if !slices.Contains(revisions, revision) {
				revisions = append(revisions, revision)
			}
		}
	}
	style.line(b, 4, "", "these clusters keep their last applied state and are still repaired until they are "+
		"declared again; if the removals are intended: "+Confirm(strings.Join(revisions, " ")), nil)
}
