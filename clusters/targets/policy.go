package targets

import (
	"fmt"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// mostRefusals is how many refusals are told of one cluster.
const mostRefusals = 10

// refuse adds to each target what it may not ask of pods. It does not matter where the target comes
// from: what was applied last may have been allowed then, or have been changed by hand since. Of an
// orphan nothing is made.
func refuse(targets []Target, owned inventory.ByCluster, desired reconcile.Desired) {
	for i := range targets {
		t := &targets[i]
		broken := t.Applied == nil && len(t.Problems) > 0 && !desired.Live
		if broken || t.Orphaned != "" {
			continue // it is left alone as it is
		}
		source := t.Source
		if custom := owned.Of(t.Key()).Custom; t.Applied == nil && custom != nil {
			source = custom.Status.DeclaredSource
		}
		t.Problems = append(t.Problems, refusalsOf(t.Cluster, source, desired)...)
	}
}

// refusalsOf are what the policy of the source says against a cluster. Where it is not known which
// source that is, each has to allow it that may declare clusters there; what one of them allows is
// nothing to tell in a cluster that may be another's.
func refusalsOf(c v1alpha1.EtcdCluster, source string, desired reconcile.Desired) []string {
	if len(desired.Sources) == 0 {
		return shortened(desired.Refuses.Refusals(c.Spec))
	}
	if place, known := desired.PlaceOf(source); known {
		return shortened(place.Refuses.Refusals(c.Spec))
	}
	for _, place := range desired.Sources {
		if place.Namespaces.Allow(c.Namespace) && len(place.Refuses.Refusals(c.Spec)) > 0 {
			return []string{"it is not known which source has declared what was applied last, and not every source " +
				"that may declare clusters in the namespace allows what it asks of pods; declare the cluster"}
		}
	}
	return nil
}

func shortened(problems []string) []string {
	if more := len(problems) - mostRefusals; more > 0 {
		return append(problems[:mostRefusals:mostRefusals], fmt.Sprintf("and %d more", more))
	}
	return problems
}
