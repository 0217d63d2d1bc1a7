package reconcile

import (
	"context"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// Pass runs one pass over all clusters. The report contains all failures. While some sources are still being read, Pass
// processes only clusters that those sources cannot affect. It processes the other clusters once their declarations are
// known.
//
// Until the members of a new cluster are sealed, a member that loses its volume could bootstrap the cluster again. Pass
// therefore continues to process clusters being bootstrapped until their members are sealed or ctx is done.
func (r *Reconciler) Pass(ctx context.Context) report.Report {
	in := r.begin(ctx, r.once)
	rep := r.pass(ctx, in, nil)
	acted := map[string]*report.Outcome{}
	remember(acted, rep)
	var changes Changes
	again := in.askAgain()
	for latest := rep; in.reading() || anyFounding(rep) || r.inFlight.underway(); {
		if changes == nil && !r.Plan {
			changes = r.Live.Changes(ctx)
		}
		if !r.rest(ctx, in, changes, latest, again) {
			return r.ended(rep, report.Report{}, acted)
		}
		if changes != nil {
			changes.Take() // clusters being bootstrapped are processed regardless of changes
		}
		in.look()
		latest.Clusters = r.takeLate(&rep, acted)
		founding := foundingOf(rep)
		asks := in.asking && !time.Now().Before(again)
		if !in.fresh && !asks && len(founding) == 0 {
			continue
		}
		latest = r.pass(ctx, in, func(key string) bool { return founding[key] || r.inFlight.isNew(key) })
		remember(acted, latest)
		if ctx.Err() != nil {
			return r.ended(rep, latest, acted)
		}
		replace(&rep, latest)
		again = in.askAgain()
	}
	recall(acted, &rep)
	return rep
}

// rest waits until something changes, a cluster in the latest report is due again, or source ancestry must be checked
// again. It returns false if ctx is done first.
func (r *Reconciler) rest(
	ctx context.Context, in *feed, changes Changes, latest report.Report, again time.Time,
) bool {
	earliest := time.Now().Add(pace)
	longest := recheck(r.idle(foundingOf(latest), latest))
	if in.asking {
		longest = min(longest, time.Until(again))
	}
	return longest <= 0 || r.wait(ctx, in, changes, earliest, longest)
}

// idle returns the report restricted to the given clusters that are not being processed.
func (r *Reconciler) idle(clusters map[string]bool, rep report.Report) report.Report {
	busy := r.inFlight.areBusy()
	rep.Clusters = slices.DeleteFunc(slices.Clone(rep.Clusters),
		func(c report.Cluster) bool { return !clusters[c.Key()] || busy[c.Key()] })
	return rep
}

func anyFounding(rep report.Report) bool { return len(foundingOf(rep)) > 0 }

// foundingOf returns the clusters of a report that are being bootstrapped.
func foundingOf(rep report.Report) map[string]bool {
	founding := map[string]bool{}
	for _, c := range rep.Clusters {
		if !rep.Planned && c.BeingFounded() {
			founding[c.Key()] = true
		}
	}
	return founding
}

// replace replaces the report with the report of a later pass, but keeps clusters that the later pass did not cover. If
// the later report contains a cluster twice, for example because it was slow twice in a row, the last entry is used.
func replace(rep *report.Report, later report.Report) {
	about := keysOf(later)
	later.Clusters = newest(later.Clusters)
	clusters := slices.DeleteFunc(slices.Clone(rep.Clusters), func(c report.Cluster) bool { return about[c.Key()] })
	removals := rep.Removals
	*rep = later
	rep.Clusters = append(clusters, later.Clusters...)
	slices.SortFunc(rep.Clusters, byKey)
	if later.Unobserved {
		rep.Removals = removals
	}
}

// newest returns the last entry for each cluster.
func newest(entries []report.Cluster) []report.Cluster {
	told := map[string]bool{}
	var list []report.Cluster
	for _, c := range slices.Backward(entries) {
		if !told[c.Key()] {
			list = append(list, c)
		}
		told[c.Key()] = true
	}
	return list
}

// replaceFinished is like replace, but for a stopped pass. It skips an entry with an error if the cluster has an
// earlier entry, because stopping the pass may have caused the error.
func replaceFinished(rep *report.Report, later report.Report) {
	told, finished := keysOf(*rep), *rep
	finished.Clusters = slices.DeleteFunc(later.Clusters,
		func(c report.Cluster) bool { return c.Error != "" && told[c.Key()] })
	replace(rep, finished)
}

func keysOf(rep report.Report) map[string]bool {
	keys := map[string]bool{}
	for _, c := range rep.Clusters {
		keys[c.Key()] = true
	}
	return keys
}

// knownOf returns the clusters found by a full pass, including clusters in flight.
func knownOf(rep report.Report) map[string]bool {
	known := keysOf(rep)
	for _, cluster := range rep.Others {
		known[cluster] = true
	}
	return known
}

func byKey(a, b report.Cluster) int { return strings.Compare(a.Key(), b.Key()) }
