package reconcile

import (
	"context"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// Pass runs one pass. All failures are in the report. Until its members are sealed, a cluster that is being founded could be founded once more by a
// member that loses its volume; so with such clusters, and no others, passes go on until they are sealed or ctx is done.
func (r *Reconciler) Pass(ctx context.Context) report.Report {
	desired := r.fetch(ctx)
	rep := r.pass(ctx, desired, nil)
	if !anyFounding(rep) {
		return rep
	}
	changes := r.Live.Changes(ctx)
	acted := map[string]*report.Outcome{}
	remember(acted, rep)
	for latest := rep; anyFounding(rep); {
		earliest := time.Now().Add(pace)
		if longest := recheck(latest); longest > 0 && !wait(ctx, changes, earliest, longest) {
			break
		}
		founding := foundingOf(rep)
		next := r.pass(ctx, desired, func(key string) bool { return founding[key] })
		remember(acted, next)
		if ctx.Err() != nil {
			replaceFinished(&rep, next)
			break
		}
		latest = next
		replace(&rep, latest)
	}
	recall(acted, &rep)
	return rep
}

func anyFounding(rep report.Report) bool { return len(foundingOf(rep)) > 0 }

// foundingOf are the clusters of a report that are being founded.
func foundingOf(rep report.Report) map[string]bool {
	founding := map[string]bool{}
	for _, c := range rep.Clusters {
		if !rep.Planned && c.BeingFounded() {
			founding[c.Key()] = true
		}
	}
	return founding
}

// replace puts the entries of a later report in the place of those of the same clusters. What kept the later pass from looking is told.
func replace(rep *report.Report, later report.Report) {
	rep.Error, rep.Unobserved = later.Error, later.Unobserved
	for i, c := range rep.Clusters {
		for _, now := range later.Clusters {
			if now.Key() == c.Key() {
				rep.Clusters[i] = now
			}
		}
	}
}

// replaceFinished does the same for a pass that was told to stop, with the clusters that it had finished with by then.
func replaceFinished(rep *report.Report, later report.Report) {
	later.Error, later.Unobserved = rep.Error, rep.Unobserved
	later.Clusters = slices.DeleteFunc(later.Clusters, func(c report.Cluster) bool { return c.Error != "" })
	replace(rep, later)
}
