package reconcile

import (
	"context"
	"errors"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// ErrNotAsked means that no declarations are known because no source was read.
var ErrNotAsked = errors.New("no source was read")

// ObserveAll observes every cluster that has a custom resource, without reading a source, and reports its state. The
// error describes what could not be listed; the report contains all other clusters.
func ObserveAll(ctx context.Context, live Live) (report.Report, error) {
	observed, err := live.Observe(ctx, Desired{Live: true, Unread: ErrNotAsked}, nil)
	if err != nil {
		return report.Report{}, err
	}
	rep := report.Report{Planned: true, Clusters: make([]report.Cluster, len(observed.Clusters))}
	all := inTurn(len(observed.Clusters), func(i int) {
		c := observed.Clusters[i]
		// The entry contains the error.
		rep.Clusters[i], _ = guarded(c, func() report.Cluster { return observeOne(ctx, c) })
	})
	all()
	return rep, observed.Unlisted
}

func observeOne(ctx context.Context, c Cluster) report.Cluster {
	defer c.Leave(false)
	ctx, cancel := clusterTime(ctx, ClusterTimeout)
	defer cancel()
	entry := report.Cluster{Warnings: c.Warnings(), Custom: c.Custom()}
	entry.Namespace, entry.Name = c.Identity()
	var err error
	if entry.State, err = c.State(ctx); err != nil {
		entry.Error = oneLine(err)
		return entry
	}
	entry.Warnings = slices.Concat(entry.Warnings, entry.State.Unseen, entry.State.EtcdWarnings(),
		entry.State.RewriteWarnings())
	entry.Decision = decide.Decide(entry.State)
	warnOfCertificates(&entry)
	return entry
}
