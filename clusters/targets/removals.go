package targets

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// candidate is a cluster that is declared now or was declared when last observed.
type candidate struct {
	// group contains the clusters that are judged together.
	group group
	// declared is set if a declaration exists, whether it is valid or not.
	declared bool
	// held is set if an earlier pass found the cluster undeclared and its removal has not been confirmed.
	held bool
}

// group identifies clusters that are judged together. The recorded source alone does not separate the clusters of
// different tenants, because a status may name any source.
type group struct {
	// source is the source that last declared the clusters, or empty if unknown.
	source string
	// tenants identifies the sources that may declare clusters in the namespace.
	tenants string
}

// groupOf returns the group of a cluster in a namespace that source last declared.
func groupOf(source, namespace string, sources []reconcile.SourceState) group {
	var tenants []byte
	for _, p := range sources {
		allowed := byte('0')
		if p.Namespaces.Allow(namespace) {
			allowed = '1'
		}
		tenants = append(tenants, allowed)
	}
	return group{source: source, tenants: string(tenants)}
}

// fate is how the undeclared clusters of a group are treated.
type fate int

const (
	// dropped means that the clusters are orphans.
	dropped fate = iota
	// held means that the clusters are kept as last applied until the removal is confirmed.
	held
	// elsewhere means that the clusters are kept as last applied because this run does not read the source that
	// declared them.
	elsewhere
)

// judge returns the fate of the undeclared clusters of each group. If a source declares none or fewer than half of its
// clusters in a group, the removal may be a mistake, such as a wrong path or a bad merge. Held clusters remain held,
// however many new clusters are declared.
//
// A source that is not one of this run's sources may belong to another run, or may be one of this run's sources under a
// different name. Its clusters are judged if this run reads its location, if the run declares one of the clusters in
// the group, or if the run declares no clusters at all.
func judge(candidates []candidate, sources []reconcile.SourceState, declares bool) map[group]fate {
	byGroup := map[group][]candidate{}
	for _, c := range candidates {
		byGroup[c.group] = append(byGroup[c.group], c)
	}
	fates := map[group]fate{}
	for g, clusters := range byGroup {
		fates[g] = fateOf(clusters, g.source == "" || reads(sources, g.source) || !declares)
	}
	return fates
}

// fateOf returns the fate of the undeclared clusters of one group. ours is set if the source may be one of this run's
// sources.
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

// reads reports whether one of the sources has the same location as the given source, regardless of the path.
func reads(sources []reconcile.SourceState, source string) bool {
	return slices.ContainsFunc(sources, func(p reconcile.SourceState) bool {
		return reconcile.SameLocation(p.Name, source)
	})
}

// revisionOf returns the revision at which a source was read, or the revision of the only source at the same location.
// It returns "" if the revision is unknown, because the status of a cluster must not contain the revisions of other
// sources.
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

// confirms reports whether the removals at a revision are confirmed. If revisions contains several revisions, all of
// them must be confirmed.
func confirms(confirmed []string, revisions string) bool {
	commits := strings.Fields(revisions)
	return len(commits) > 0 && !slices.ContainsFunc(commits, func(r string) bool {
		return !slices.ContainsFunc(confirmed, func(c string) bool { return revision.SameCommit(c, r) })
	})
}

// UnusedConfirmations returns a message if removals are held and only other revisions are confirmed. If nothing is
// held, it returns nil, because an old confirmation may remain on a command line.
func UnusedConfirmations(confirmed []string, removals []report.Removal) []string {
	if len(confirmed) == 0 || len(removals) == 0 {
		return nil
	}
	var held []string
	for _, r := range removals {
		if !slices.Contains(held, r.Revision) {
			held = append(held, r.Revision)
		}
	}
	return []string{fmt.Sprintf("%s names %s, but the held clusters were removed at %s, so none of them is confirmed",
		report.FlagConfirm, strings.Join(confirmed, " and "), strings.Join(held, " and at "))}
}
