package targets

import (
	"cmp"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// undeclared returns the targets of the clusters that no source declares, and the held removals among them. unplaced
// contains, by source, the problems that may affect any cluster of the source.
func undeclared(
	declared []Target, all, rest inventory.ByCluster, desired reconcile.Desired, unplaced map[string][]string,
) ([]Target, []report.Removal) {
	orphans := orphansOf(declared, rest, desired)
	goes := map[inventory.Key]bool{}
	for _, o := range orphans {
		goes[inventory.KeyOf(o.custom)] = o.goes(desired.Confirmed)
	}
	candidates := candidatesIn(all, rest, goes, desired.Sources)
	fates := judge(candidates, desired.Sources, len(declared)+len(desired.Problems) > 0)
	var targets []Target
	var unconfirmed removals
	for _, o := range orphans {
		t, source := lastApplied(o.custom), o.custom.Status.DeclaredSource
		group := groupOf(source, o.custom.Namespace, desired.Sources)
		unread, problems := doubts(source, desired, unplaced)
		switch {
		case unread || len(problems) > 0:
			t = o.unjudged(unread, problems)
		case goes[t.Key()] || fates[group] == dropped:
			t.Orphaned = o.describe()
		case fates[group] == elsewhere:
			t = t.leaveTo(source, o.confirm)
		default:
			o.said = o.describe()
			t = t.hold(o)
			unconfirmed.add(o, group, candidates)
		}
		targets = append(targets, t)
	}
	return targets, unconfirmed.list
}

// doubts returns the reasons why it is unknown whether a source declares a cluster: the source could not be read, it
// has problems that may affect the cluster, or not all of its clusters were listed, so the number of removed clusters
// is unknown. If the source is unknown or not one of this run's sources, any source of this run may now declare the
// cluster. The problems of these sources are then omitted, because they may belong to a different tenant.
func doubts(source string, desired reconcile.Desired, unplaced map[string][]string) (unread bool, problems []string) {
	if desired.Unread != nil || len(desired.Sources) == 0 {
		return desired.Unread != nil, unplaced[source]
	}
	if state, ok := desired.StateOf(source); ok {
		return state.Unread != nil || state.Unlisted, unplaced[state.Name]
	}
	unlisted := slices.ContainsFunc(desired.Sources, func(p reconcile.SourceState) bool { return p.Unlisted })
	return desired.Failure() != nil || unlisted || len(unplaced) > 0, nil
}

// unjudged returns the target of an undeclared cluster that may in fact be declared, by a source that cannot be read or
// in a file with a problem that does not name a cluster. An existing orphan remains an orphan.
func (o *orphan) unjudged(unread bool, problems []string) Target {
	t := o.asBefore()
	switch {
	case unread:
	case o.isOrphan():
		t.Orphaned = o.describe()
	case !o.held:
		t.Problems = problems
	}
	return t
}

// goes reports whether an undeclared cluster is an orphan regardless of other declarations: it already was an orphan,
// its last lifecycle is Deleted, or its removal is confirmed.
func (o *orphan) goes(confirmed []string) bool {
	meant := confirms(confirmed, o.confirm) || confirms(confirmed, o.revision)
	return o.isOrphan() || o.custom.Spec.Lifecycle == v1alpha1.LifecycleDeleted || meant
}

// candidatesIn lists the clusters that count when undeclared clusters are judged: all that were declared when last
// observed, except those that are already orphans.
func candidatesIn(
	all, rest inventory.ByCluster, goes map[inventory.Key]bool, sources []reconcile.SourceState,
) []candidate {
	var list []candidate
	for k, p := range all {
		o := orphanOf(p.Custom)
		if goes[k] || o.isOrphan() {
			continue
		}
		list = append(list, candidate{group: groupOf(p.Custom.Status.DeclaredSource, k.Namespace, sources),
			declared: rest[k] == nil, held: o.held})
	}
	return list
}

// removals lists the held removals and the group of each.
type removals struct {
	list   []report.Removal
	groups []group
}

// add adds a cluster to the removal with the same group and revision, or to a new removal.
func (r *removals) add(o *orphan, g group, candidates []candidate) {
	name := inventory.KeyOf(o.custom).String()
	for i := range r.list {
		if one := &r.list[i]; r.groups[i] == g && one.Revision == o.confirm {
			one.Clusters = append(one.Clusters, name)
			return
		}
	}
	of := 0
	for _, c := range candidates {
		if c.group == g {
			of++
		}
	}
	r.list = append(r.list, report.Removal{Source: g.source, Revision: o.confirm, Clusters: []string{name}, Of: of})
	r.groups = append(r.groups, g)
}

// hold keeps a cluster as last applied although no source declares it. The warning does not contain revisions of other
// sources, which the report of the run shows.
func (t Target) hold(o *orphan) Target {
	t.Held = o.said
	how := report.FlagConfirm + ", with the revision in the report of the run,"
	if revision := cmp.Or(o.since, o.revision); revision != "" {
		how = report.Confirm(revision)
	}
	t.Warnings = []string{fmt.Sprintf("%s: it is kept as last applied unless %s confirms the removal", o.said, how)}
	return t
}

// leaveTo keeps a cluster as last applied because it was declared by a source that this run does not read.
func (t Target) leaveTo(source, revision string) Target {
	t.Elsewhere = true
	t.Warnings = []string{fmt.Sprintf(
		"it was declared by %s, which this run does not read, and is kept as last applied. "+
			"If no other run reads that source and the removal is intended: %s", source, report.Confirm(revision))}
	return t
}
