package clusters

import (
	"context"
	"errors"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/panics"
)

// lame is a cluster without a client for Kubernetes, so that whoever asks for one panics.
func lame() *cluster {
	live := New(nil, Options{LeaseDuration: 300 * time.Millisecond})
	c := &cluster{live: live, names: objects.NamesOf("a"), listed: &inventory.Listed{}, own: &inventory.Cluster{Lease: leaseOf(live.holder.String(), time.Now())}}
	c.target.Cluster.Name, c.target.Cluster.Namespace = "a", "default"
	return c
}

// TestPanicWhileObserving: half a state is none, however often one asks, and a panic in a goroutine
// of the cluster's is its own too.
func TestPanicWhileObserving(t *testing.T) {
	c := lame()
	for range 2 {
		_, err := c.State(t.Context())
		if _, is := errors.AsType[*panics.Error](err); !is {
			t.Fatalf("got %v", err)
		}
	}
}

// TestPanicWhileRenewing: without anybody who renews the lease nothing more is written.
func TestPanicWhileRenewing(t *testing.T) {
	c := lame()
	ctx, release, err := c.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	<-ctx.Done()
	if _, is := errors.AsType[*panics.Error](context.Cause(ctx)); !is {
		t.Errorf("it ended with %v", context.Cause(ctx))
	}
	if err := c.stillOurs(ctx); err == nil {
		t.Error("it would still write")
	}
}
