package reconcile

import (
	"context"
	"errors"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// ErrNotAsked is the reason why declarations are unknown if no source was read.
var ErrNotAsked = errors.New("no source was read")

// ObserveAll observes every custom resource as it is, without a source, and reports the state of each cluster. The
// error names everything that could not be observed; the report contains the rest.
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
