package targets

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// candidate is a cluster that was declared when it was last looked at, or is declared now.
type candidate struct {
	// source that declared it last; empty if that is not known.
	source string
	// declared: it is now, well or badly.
	declared bool
	// held: a pass before found it undeclared, and nobody has confirmed that.
	held bool
}

// fate is what becomes of the clusters that their source does not declare.
type fate int

const (
	// dropped: they are orphans.
	dropped fate = iota
	// held: they stay as last applied until a person confirms it.
	held
	// elsewhere: they stay as last applied, since this run does not read what declared them.
	elsewhere
)

// judge tells the fate of the undeclared clusters of each source. A source that declares none of
// its clusters any more, or fewer than half of them, may do so by accident: a wrong path, a merge
// gone wrong. What is held once stays so, however many clusters are new by then.
//
// A source that this run is not given may be another run's, or the same one under another name. It
// is judged if it is in a place that the run reads, if the run declares one of its clusters, or if
// the run declares none at all.
func judge(candidates []candidate, places []reconcile.Place, declares bool) map[string]fate {
	bySource := map[string][]candidate{}
	for _, c := range candidates {
		bySource[c.source] = append(bySource[c.source], c)
	}
	fates := map[string]fate{}
	for source, clusters := range bySource {
		fates[source] = fateOf(clusters, source == "" || reads(places, source) || !declares)
	}
	return fates
}

// fateOf is the fate of the undeclared ones of the clusters of one source; ours says that this run
// reads that source.
func fateOf(clusters []candidate, ours bool) fate {
	left, heldBefore := 0, false
	for _, c := range clusters {
		if c.declared {
			left++
		}
		heldBefore = heldBefore || c.held && !c.declared
	}
	switch {
	case heldBefore:
		return held
	case left == 0 && !ours:
		return elsewhere
	case left*2 < len(clusters):
		return held
	}
	return dropped
}

// reads reports whether one of the places is where that source is, at whatever path.
func reads(places []reconcile.Place, source string) bool {
	return slices.ContainsFunc(places, func(p reconcile.Place) bool { return reconcile.SameLocation(p.Name, source) })
}

// revisionOf is the revision at which a source was read: its own, or that of the only one in the
// same location. It is empty if that is not known: what others are at is said in no cluster of this
// one.
func revisionOf(source string, desired reconcile.Desired) string {
	var there []string
	for _, p := range desired.Sources {
		if p.Name == source {
			return p.Revision
		}
		if reconcile.SameLocation(p.Name, source) {
			there = append(there, p.Revision)
		}
	}
	switch {
	case len(there) == 1:
		return there[0]
	case source == "" && len(desired.Sources) <= 1:
		return desired.Revision
	}
	return ""
}

// confirms reports whether a person has confirmed what a revision no longer declares: that
// revision, or each where it stands for several.
func confirms(confirmed []string, revision string) bool {
	commits := strings.Fields(revision)
	return len(commits) > 0 && !slices.ContainsFunc(commits, func(r string) bool {
		return !slices.ContainsFunc(confirmed, func(c string) bool { return commitOf(c) == commitOf(r) })
	})
}

// ConfirmedInVain says so where something is held and what is confirmed is another revision. Where
// nothing is held it says nothing: what was confirmed once may stay on a command line.
func ConfirmedInVain(confirmed []string, removals []report.Removal) []string {
	if len(confirmed) == 0 || len(removals) == 0 {
		return nil
	}
	var held []string
	for _, r := range removals {
		if !slices.Contains(held, r.Revision) {
			held = append(held, r.Revision)
		}
	}
	return []string{fmt.Sprintf("%s names %s, and what is held was dropped at %s: nothing of it is confirmed",
		report.FlagConfirm, strings.Join(confirmed, " and "), strings.Join(held, " and at "))}
}

// commitOf is the commit of a revision such as main@sha1:4f2a…; the revision itself where it has
// none.
func commitOf(revision string) string {
	return revision[strings.LastIndex(revision, ":")+1:]
}
