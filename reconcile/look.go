package reconcile

import (
	"context"
	"errors"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

var errNotAsked = errors.New("no source was asked")

// Look observes every custom resource as it is, without a source, and says what each cluster is at.
func Look(ctx context.Context, live Live) (report.Report, error) {
	observed, err := live.Observe(ctx, Desired{Live: true, Unread: errNotAsked})
	if err != nil {
		return report.Report{}, err
	}
	rep := report.Report{Planned: true, Clusters: make([]report.Cluster, len(observed.Clusters))}
	inTurn(len(observed.Clusters), func(i int) {
		ctx, cancel := clusterTime(ctx, ClusterTimeout)
		defer cancel()
		c := observed.Clusters[i]
		entry := report.Cluster{Warnings: c.Warnings()}
		entry.Namespace, entry.Name = c.Identity()
		var err error
		if entry.State, err = c.State(ctx); err != nil {
			entry.Error = oneLine(err)
		} else {
			entry.Decision = decide.Decide(entry.State)
			warnOfExpiry(&entry)
		}
		rep.Clusters[i] = entry
	})
	return rep, nil
}
