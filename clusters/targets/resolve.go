package targets

import (
	"slices"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// Resolved is the result of Resolve.
type Resolved struct {
	// Desired contains only declarations by the source that owns the cluster, and warnings about unused confirmations.
	Desired reconcile.Desired
	// Targets are the clusters of the pass, in order.
	Targets []Target
	// Removals are the clusters that seem to have been removed by mistake.
	Removals []report.Removal
}

// Resolve derives the targets of a pass from the declarations and the listed objects. It determines which source
// declares each cluster, checks the targets against the policies, and limits how many deletions start. refuse, if not
// nil, adds problems that are specific to this run.
func Resolve(desired reconcile.Desired, owned inventory.ByCluster, deletions *Deletions,
	refuse func([]Target, reconcile.Desired),
) Resolved {
	desired = desired.ResolveOwners(Before(owned))
	targets, removals := Of(desired, owned)
	if refuse != nil {
		refuse(targets, desired)
	}
	desired.Warnings = append(slices.Clip(desired.Warnings), UnusedConfirmations(desired.Confirmed, removals)...)
	return Resolved{Desired: desired, Targets: deletions.Limit(targets, owned, desired.Live), Removals: removals}
}
