package reconcile

import (
	"context"
	"errors"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Source provides the declarations, from one or several sources.
type Source interface {
	// Fetch reads all declarations, each source at one revision. If some sources take long, it calls early with what
	// is known without them, as often as useful; their Unread is then ErrReading.
	Fetch(ctx context.Context, early func(Desired)) Desired
	// Follow reads each source repeatedly, with a pause in between, until ctx is done, and calls known whenever
	// something has changed, at least once. No source waits for another: the Unread of sources that have not been read
	// yet is ErrReading. While a source is being read again, its previous declarations remain.
	Follow(ctx context.Context, pause time.Duration, known func(Desired))
}

// Desired is everything that is declared.
type Desired struct {
	// Revision is branch@sha1:commit, or the revisions of several sources one after the other. It is empty if no
	// source could be read. It is for reports of the run: a cluster only shows the revision of its own source.
	Revision string
	// Signer is the signer of the revision, if signatures are verified.
	Signer string
	// Clusters are the declared clusters. Several sources may declare the same cluster: see ResolveOwners.
	Clusters []Declaration
	// Sources are the sources that were asked, whether or not they were read.
	Sources []SourceState
	// Warnings are about the sources.
	Warnings []string
	// Problems prevent a declaration, or an unknown number of them, from being understood.
	Problems []report.Problem
	// Unread is why none of the sources could be read. The reason for a single source is in its SourceState.
	Unread error
	// Contested are the clusters, as namespace/name, that several sources declare and that none of them has declared
	// before: see ResolveOwners.
	Contested []string
	// Namespaces limits the namespaces in which clusters may be declared. Clusters in other namespaces are not managed
	// by this run.
	Namespaces Namespaces
	// Refuses returns which pod settings of a declaration are not allowed if no source defines it, because the custom
	// resources themselves are the declarations.
	Refuses Policy
	// Confirmed are the revisions whose removals have been confirmed.
	Confirmed []string
	// Live is set if the custom resources themselves are the declarations; there is no other source.
	Live bool
}

// Declaration is a declared cluster.
type Declaration struct {
	// Cluster is the cluster with defaults applied.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as in the source, without defaults: the fields that server-side apply owns.
	Applied map[string]any
	// Source is the name of the source that declares it, and Revision its revision.
	Source, Revision string
	// Where is the position of the declaration, as a problem without a message.
	Where report.Problem
	// LineOf returns the line of the field with that path, or of its nearest known parent.
	LineOf func(path string) int
	// Warnings are about the declaration.
	Warnings []string
}

// Live is the side on which clusters run.
type Live interface {
	// Observe lists the objects of the declared clusters, and of clusters that may be declared: if a source could not
	// be read, what was last applied counts as declared. A revision that does not follow what was applied before is
	// refused, as if it could not be read. Each cluster is only observed when its State is called. An error means that
	// nothing could be observed.
	//
	// If wanted is set, only those clusters, by namespace/name, need to be listed: the others are returned as they were
	// last listed, and their State must not be called.
	Observe(ctx context.Context, desired Desired, wanted func(cluster string) bool) (Observed, error)
	// Changes reports changes from now on, until ctx is done. It returns nil if it does not track changes.
	Changes(ctx context.Context) Changes
	// Close releases what the passes hold.
	Close(ctx context.Context) error
}

// Changes reports changes of the clusters' objects.
type Changes interface {
	// Woken receives a value once there is something to take.
	Woken() <-chan struct{}
	// Take returns the clusters, as namespace/name, that have changed since the last call, and for each whether its
	// declaration may have changed. all reports that any cluster may have changed, because some changes were missed.
	Take() (clusters map[string]bool, all bool)
}

// Observed is the input of a pass.
type Observed struct {
	// Desired is the desired state without refused sources.
	Desired  Desired
	Clusters []Cluster
	// Removals are the removals that are not confirmed: these clusters are kept as last applied.
	Removals []report.Removal
	// Unlisted contains which namespaces could not be listed, and why, or nil if all were. Declared clusters in them
	// report it too.
	Unlisted error
	// UnlistedIn are these namespaces. Whether other clusters than the declared ones exist in them is unknown.
	UnlistedIn []string
}

// Cluster is a cluster in a pass.
type Cluster interface {
	// Identity returns namespace and name.
	Identity() (namespace, name string)
	// DeclaredBy returns the name of the source that declared the cluster at the last report, or "" if it is unknown.
	DeclaredBy() string
	// Unwell reports whether the cluster was unhealthy at the last report, or has never been reported: such clusters
	// come first.
	Unwell() bool
	// State observes the cluster, once, and returns the result, or why it could not be observed.
	State(ctx context.Context) (decide.State, error)
	// Warnings returns warnings about the declaration.
	Warnings() []string
	// Custom returns the custom resource as it was listed, or nil if it does not exist. It must not be modified.
	Custom() *v1alpha1.EtcdCluster
	// Changes returns the differences between the live state, as State has found it, and the declaration, together with
	// the changes of the next action, which may be nil. Partial results are returned with an error.
	Changes(next decide.Action) ([]report.Change, error)
	// Do executes one action. Having nothing to change is not an error. It returns ErrLocked if another pass is acting.
	Do(ctx context.Context, action decide.Action) (report.Outcome, error)
	// Report reports the pass in the cluster itself, as status and events, or, without a decision, only that it could
	// not be observed. It only writes news, and returns it.
	Report(ctx context.Context, entry report.Cluster, source SourceStatus) ([]report.News, error)
	// Leave releases what was kept for the pass, which must not use the cluster afterwards; soon means that a later
	// pass will look at it again, because something is left to do.
	Leave(soon bool)
}

// SourceStatus is the part of the status about the source of a cluster.
type SourceStatus struct {
	// Source is the source that declares the cluster, or empty if none does. Revision is the revision of the source
	// that declares or declared it, or empty if it is unknown.
	Source, Revision string
	// Committed is the revision's own commit time, or zero if it is unknown.
	Committed time.Time
	// Kin is set if this is not that source, but the only one in the same location, so that its revision says nothing
	// about the revision of that source.
	Kin bool
	// Error is the error of fetching that source. It is empty if the source is ready or unknown.
	Error string
}

// ErrLocked is returned if another pass is acting on the cluster.
var ErrLocked = errors.New("another pass is acting on this cluster")

// SetupError is an error that another pass cannot overcome: something must be set up first, such as permissions.
type SetupError struct{ Err error }

func (e SetupError) Error() string { return e.Err.Error() }
func (e SetupError) Unwrap() error { return e.Err }
