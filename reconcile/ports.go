package reconcile

import (
	"context"
	"errors"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Source is where declarations come from: one place or several.
type Source interface {
	// Fetch reads all declarations, each place at one revision. If some places take long, it calls
	// early with what is known without them, as often as it is worth it; they are Unread for
	// ErrReading then.
	Fetch(ctx context.Context, early func(Desired)) Desired
	// Follow reads each place again and again, with a pause in between, until ctx is done, and calls known
	// each time that something else is known, at least once. No place waits for another: those that have not
	// been read yet are Unread for ErrReading. What a place declares that is being read again is as before.
	Follow(ctx context.Context, pause time.Duration, known func(Desired))
}

// Desired is everything that is declared.
type Desired struct {
	// Revision as branch@sha1:commit; with several places, theirs one after the other. Empty if
	// none could be read. It is for reports of the run: what is said in one cluster is of its own
	// place.
	Revision string
	// Signer of the revision, where signatures are verified.
	Signer string
	// Clusters that are declared. Several places may declare one of the same name: see Settled.
	Clusters []Declaration
	// Sources that were asked, read or not.
	Sources []Place
	// Warnings about the sources.
	Warnings []string
	// Problems that keep a declaration, or an unknown number of them, from being understood.
	Problems []report.Problem
	// Unread says why none of the sources could be read. Why one of them could not is said in its
	// Place.
	Unread error
	// Contested are the clusters, as namespace/name, that several sources declare and none of them
	// has declared before: see Settled.
	Contested []string
	// Namespaces are the only ones that clusters may be declared in. Clusters in others are
	// somebody else's.
	Namespaces Namespaces
	// Refuses says what a declaration may not ask of pods where no place says it: the custom
	// resources themselves are what is declared.
	Refuses Policy
	// Confirmed are the revisions of which a person has said that what they no longer declare is
	// meant to go.
	Confirmed []string
	// Live: the custom resources themselves are what is declared; there is no other source.
	Live bool
}

// Declaration is one declared cluster.
type Declaration struct {
	// Cluster with defaults applied.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as the source states it, without defaults: what server-side apply owns.
	Applied map[string]any
	// Source that declares it, by the name of its Place, and the revision.
	Source, Revision string
	// Where it is declared: a problem without a message.
	Where report.Problem
	// LineOf is the line of the field with that path, or of the nearest above it that is known.
	LineOf func(path string) int
	// Warnings about it.
	Warnings []string
}

// Live is the side where clusters run.
type Live interface {
	// Observe lists what there is of the declared clusters, and of those that may be: where a place
	// could not be read, what was last applied counts as declared. A revision that does not follow
	// what was applied before is refused, as if it could not be read. Each cluster is looked at
	// only when its State is asked for. An error means that nothing could be observed.
	//
	// If wanted is given, only these clusters, by namespace/name, need be listed: the others are told of
	// as they were when they were last listed, and their State is not to be asked for.
	Observe(ctx context.Context, desired Desired, wanted func(cluster string) bool) (Observed, error)
	// Changes tells what changes from now on, until ctx is done; nil if nothing does.
	Changes(ctx context.Context) Changes
	// Close gives up what the passes hold.
	Close(ctx context.Context) error
}

// Changes are those of the objects of clusters.
type Changes interface {
	// Woken has something in it once there is something to take.
	Woken() <-chan struct{}
	// Take returns the clusters, as namespace/name, that have changed since it was last asked, and of each
	// whether its declaration may have; all says that any may have, since some changes were not seen.
	Take() (clusters map[string]bool, all bool)
}

// Observed is what a pass is about.
type Observed struct {
	// Desired without what is refused.
	Desired  Desired
	Clusters []Cluster
	// Removals that nobody has confirmed: these clusters stay as last applied.
	Removals []report.Removal
	// Unlisted says which namespaces could not be looked at, and why; nil if all could. Their
	// clusters say so as well, those that are declared.
	Unlisted error
	// UnlistedIn are these namespaces. What there is in them beside what is declared is not known.
	UnlistedIn []string
}

// Cluster is one cluster of a pass.
type Cluster interface {
	// Identity returns namespace and name.
	Identity() (namespace, name string)
	// DeclaredBy is the name of the Place that declared the cluster when it was last told about;
	// empty if that is not known.
	DeclaredBy() string
	// Unwell reports whether the cluster was not well when it was last told about, or never was:
	// such clusters come first.
	Unwell() bool
	// State observes the cluster, once, and returns what was observed, or why it could not be.
	State(ctx context.Context) (decide.State, error)
	// Warnings about the declaration.
	Warnings() []string
	// Custom is the custom resource as it was listed; nil if there is none. Nobody changes it.
	Custom() *v1alpha1.EtcdCluster
	// Changes are what differs between what lives and what is declared, as State has found it, with what an action
	// changes that is next; nil for none. What could be told is returned beside an error.
	Changes(next decide.Action) ([]report.Change, error)
	// Do carries out one action. Nothing to change is no error. ErrLocked: another pass is acting.
	Do(ctx context.Context, action decide.Action) (report.Outcome, error)
	// Report tells of the pass in the cluster itself: status and events, or, without a decision, only that it could not
	// be observed. It writes only what is news, and returns that.
	Report(ctx context.Context, entry report.Cluster, source SourceState) ([]report.News, error)
	// Leave gives up what was kept for the pass, which has done with the cluster, and is not to ask it anything
	// any more; soon says that a later pass looks at it again, as something is left to do.
	Leave(soon bool)
}

// SourceState is what status says of the source of one cluster.
type SourceState struct {
	// Source that declares the cluster; empty if none does. Revision of the source that does, or
	// did; empty if it is not known.
	Source, Revision string
	// Committed is when that revision was committed, as it says itself; zero if that is not known.
	Committed time.Time
	// Kin: it is not that source, but the only one in the same location, so its revision says
	// nothing about what that source was read at.
	Kin bool
	// Error of fetching that source; empty if it is ready, or not known.
	Error string
}

// ErrLocked says that another pass is acting on the cluster.
var ErrLocked = errors.New("another pass is acting on this cluster")

// SetupError is an error that no further pass overcomes: something must be set up first, such as
// permissions.
type SetupError struct{ Err error }

func (e SetupError) Error() string { return e.Err.Error() }
func (e SetupError) Unwrap() error { return e.Err }
