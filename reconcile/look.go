package reconcile

import (
	"context"
	"errors"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// ErrNotAsked is why nothing is known of what sources declare: none was asked.
var ErrNotAsked = errors.New("no source was asked")

// Look observes every custom resource as it is, without a source, and says what each cluster is at.
// An error says what could not be observed; the report has the rest.
func Look(ctx context.Context, live Live) (report.Report, error) {
	observed, err := live.Observe(ctx, Desired{Live: true, Unread: ErrNotAsked}, nil)
	if err != nil {
		return report.Report{}, err
	}
	rep := report.Report{Planned: true, Clusters: make([]report.Cluster, len(observed.Clusters))}
	all := inTurn(len(observed.Clusters), func(i int) {
		c := observed.Clusters[i]
		// The entry says why there is none.
		rep.Clusters[i], _ = guarded(c, func() report.Cluster { return look(ctx, c) })
	})
	all()
	return rep, observed.Unlisted
}

func look(ctx context.Context, c Cluster) report.Cluster {
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
