package reconcile

import (
	"context"
	"errors"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Source is where declarations come from: one place or several.
type Source interface {
	// Fetch reads all declarations, each place at one revision.
	Fetch(ctx context.Context) Desired
}

// Desired is everything that is declared.
type Desired struct {
	// Revision as branch@sha1:commit; with several places, theirs one after the other. Empty if none could be read.
	Revision string
	// Signer of the revision, where signatures are verified.
	Signer   string
	Clusters []Declaration
	// Sources that were read.
	Sources []Place
	// Warnings about the sources.
	Warnings []string
	// Problems that keep a declaration, or an unknown number of them, from being understood.
	Problems []report.Problem
	// Unread says which places could not be read, and why: nothing is known about what they declare.
	Unread error
	// Namespaces are the only ones that clusters may be declared in; all if there are none. Clusters in others are somebody else's.
	Namespaces []string
	// Confirmed are the revisions of which a person has said that what they no longer declare is meant to go.
	Confirmed []string
	// Live: the custom resources themselves are what is declared; there is no other source.
	Live bool
}

// Place is one source, as of one revision.
type Place struct {
	// Name tells it from others: the location, and the path there after ",path=" if it has one.
	Name     string
	Revision string
}

// Declaration is one declared cluster.
type Declaration struct {
	// Cluster with defaults applied.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as the source states it, without defaults: what server-side apply owns.
	Applied map[string]any
	// Source that declares it, by its name, and the revision.
	Source, Revision string
	// Follows reports whether that revision is another one, or descends from it. An error means that this cannot be told. It is nil where it does
	// not matter.
	Follows func(ctx context.Context, revision string) (bool, error)
	// Warnings about it.
	Warnings []string
}

// Live is the side where clusters run.
type Live interface {
	// Observe lists what there is of the declared clusters, and of those that may be: where a place could not be read, what was
	// last applied counts as declared. A revision that does not follow what was applied before is refused, as if it could not be read.
	// Each cluster is looked at only when its State is asked for. An error means that nothing could be observed.
	Observe(ctx context.Context, desired Desired) (Observed, error)
	// Changes has something in it once anything has changed, until ctx is done.
	Changes(ctx context.Context) <-chan struct{}
	// Close gives up what the passes hold.
	Close(ctx context.Context) error
}

// Observed is what a pass is about.
type Observed struct {
	// Desired without what is refused.
	Desired  Desired
	Clusters []Cluster
	// Removals that nobody has confirmed: these clusters stay as last applied.
	Removals []report.Removal
}

// Cluster is one cluster of a pass.
type Cluster interface {
	// Identity returns namespace and name.
	Identity() (namespace, name string)
	// Unwell reports whether the cluster was not well when it was last told about, or never was: such clusters come first.
	Unwell() bool
	// State observes the cluster, once, and returns what was observed, or why it could not be.
	State(ctx context.Context) (decide.State, error)
	// Warnings about the declaration.
	Warnings() []string
	// Do carries out one action. Nothing to change is no error. ErrLocked: another pass is acting.
	Do(ctx context.Context, action decide.Action) (report.Outcome, error)
	// Report tells of the pass in the cluster itself: status and events. It writes only what is news.
	Report(ctx context.Context, entry report.Cluster, source SourceState) error
}

// SourceState is what status says of the source of one cluster.
type SourceState struct {
	// Source that declares the cluster; empty if none does. Revision that was fetched.
	Source, Revision string
	// Error of fetching; empty if the source is ready.
	Error string
}

// ErrLocked says that another pass is acting on the cluster.
var ErrLocked = errors.New("another pass is acting on this cluster")

// SetupError is an error that no further pass overcomes: something must be set up first, such as permissions.
type SetupError struct{ Err error }

func (e SetupError) Error() string { return e.Err.Error() }
func (e SetupError) Unwrap() error { return e.Err }
