package reconcile

import (
	"context"
	"errors"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Source is where declarations come from.
type Source interface {
	// Fetch reads all declarations of one revision. An error means that the source could not be read, and
	// nothing about what it declares.
	Fetch(ctx context.Context) (Desired, error)
}

// Desired is everything that one revision of the source declares.
type Desired struct {
	// Revision as branch@sha1:commit.
	Revision string
	// Signer of the revision, where signatures are verified.
	Signer   string
	Clusters []Declaration
	// Problems that keep a declaration, or an unknown number of them, from being understood.
	Problems []report.Problem
}

// Declaration is one declared cluster.
type Declaration struct {
	// Cluster with defaults applied.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as the source states it, without defaults: what server-side apply owns.
	Applied map[string]any
	// Warnings about it.
	Warnings []string
}

// Live is the side where clusters run.
type Live interface {
	// Observe reads everything about the declared clusters. With fetched false the source could not be read, and what was
	// last applied counts as declared. An error means that nothing could be observed.
	Observe(ctx context.Context, desired Desired, fetched bool) ([]Cluster, error)
	// Changes has something in it once anything has changed, until ctx is done.
	Changes(ctx context.Context) <-chan struct{}
	// Close gives up what the passes hold.
	Close(ctx context.Context) error
}

// Cluster is one observed cluster.
type Cluster interface {
	// Identity returns namespace and name.
	Identity() (namespace, name string)
	// State returns what was observed, or why it could not be.
	State() (decide.State, error)
	// Warnings about the declaration.
	Warnings() []string
	// Do carries out one action. Nothing to change is no error. ErrLocked: another pass is acting.
	Do(ctx context.Context, action decide.Action) (report.Outcome, error)
	// Report tells of the pass in the cluster itself: status and events. It writes only what is news.
	Report(ctx context.Context, entry report.Cluster, source SourceState) error
}

// SourceState is what status says of the source.
type SourceState struct {
	// Revision that was fetched.
	Revision string
	// Error of fetching; empty if the source is ready.
	Error string
}

// ErrLocked says that another pass is acting on the cluster.
var ErrLocked = errors.New("another pass is acting on this cluster")

// SetupError is an error that no further pass overcomes: something must be set up first, such as permissions.
type SetupError struct{ Err error }

func (e SetupError) Error() string { return e.Err.Error() }
func (e SetupError) Unwrap() error { return e.Err }
