package reconcile

import (
	"fmt"
	"log/slog"
	"testing"

	"quorate.dev/quorate/reconcile/report"
)

// TestUnlistedNamespaceDoesNotGrowMemory checks that a loop does not remember every removal that a source has ever
// requested while a namespace cannot be listed.
func TestUnlistedNamespaceDoesNotGrowMemory(t *testing.T) {
	r := &Reconciler{Log: slog.New(slog.DiscardHandler)}
	for i := range 10 * mostEarlier {
		removal := report.Removal{Source: "two", Revision: fmt.Sprint(i), Clusters: []string{"shop/a"}, Of: 1}
		r.logRemovals([]report.Removal{removal}, Desired{}, false)
	}
	if len(r.held) > mostEarlier+1 {
		t.Errorf("%d removals are remembered", len(r.held))
	}
}
