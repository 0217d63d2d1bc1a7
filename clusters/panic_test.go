package clusters

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/internal/panics"
)

// lame returns a cluster whose Kubernetes client knows the server's time but panics on every request.
func lame(t *testing.T) *cluster {
	live := New(clientThatPanics(t), Options{LeaseDuration: 300 * time.Millisecond})
	c := &cluster{live: live, names: objects.NamesOf("a"), listed: &inventory.Listed{}, own: &inventory.Cluster{Lease: leaseOf(live.holder.String(), time.Now())}}
	c.target.Cluster.Name, c.target.Cluster.Namespace = "a", "default"
	return c
}

// clientThatPanics returns a client that has learned the server's time from its first request and panics on every later
// request.
func clientThatPanics(t *testing.T) *kube.Client {
	var asked atomic.Bool
	config := kubetest.Answering(t, func(http.ResponseWriter, *http.Request) {})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if asked.Swap(true) {
				panic("asked again")
			}
			return next.RoundTrip(r)
		})
	})
	client, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Clock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// transport is a function that implements http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPanicWhileObserving checks that every call after a panic, even one in a goroutine of the cluster, returns the
// error instead of a partial state.
func TestPanicWhileObserving(t *testing.T) {
	c := lame(t)
	for range 2 {
		_, err := c.State(t.Context())
		if _, is := errors.AsType[*panics.Error](err); !is {
			t.Fatalf("got %v", err)
		}
	}
}

// TestPanicWhileRenewing checks that writing stops once the lease is no longer renewed.
func TestPanicWhileRenewing(t *testing.T) {
	c := lame(t)
	ctx, release, err := c.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	<-ctx.Done()
	if _, is := errors.AsType[*panics.Error](context.Cause(ctx)); !is {
		t.Errorf("the context ended with %v", context.Cause(ctx))
	}
	if err := c.stillOurs(ctx); err == nil {
		t.Error("writing is still allowed")
	}
}
