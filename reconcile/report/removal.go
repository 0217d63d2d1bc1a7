package report

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// FlagConfirm is the flag that confirms a removal.
const FlagConfirm = "--confirm-removals"

// Removal is that a source no longer declares so many of its clusters that it may be an accident.
// They stay as last applied until they are declared again or a person confirms it.
type Removal struct {
	// Kubernetes is the name of the Kubernetes cluster that they are in, where there are several.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Source that declared them; empty if that is not known.
	Source string `json:"source,omitempty"`
	// Revision that no longer declares them: what to confirm.
	Revision string `json:"revision"`
	// Clusters that are not declared, as namespace/name.
	Clusters []string `json:"clusters"`
	// Of is how many there are of that source, declared or not.
	Of int `json:"of"`
}

// String says what is held, on one line.
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

// Confirm is the flag by which a person says that a revision means what it no longer declares.
func Confirm(revision string) string {
	if strings.Contains(revision, " ") {
		revision = "'" + revision + "'"
	}
	return FlagConfirm + "=" + revision
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
	style.line(b, 4, "", "they stay as last applied, and are healed, until they are declared again; if they are "+
		"meant to go: "+Confirm(strings.Join(revisions, " ")), nil)
}
