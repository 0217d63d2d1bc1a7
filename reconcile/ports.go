package reconcile

import (
	"context"
	"errors"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Source provides the declarations of one or more sources.
type Source interface {
	// Fetch reads all declarations, each source at one revision. While some sources are still being read, it may call
	// early any number of times with the declarations known so far. Unread is then ErrReading for the remaining
	// sources.
	Fetch(ctx context.Context, early func(Desired)) Desired
	// Follow reads each source repeatedly, pausing in between, until ctx is done. It calls known at least once, and
	// again whenever something has changed. Sources do not wait for each other: Unread is ErrReading until a source has
	// been read. While a source is being read again, its previous declarations remain valid.
	Follow(ctx context.Context, pause time.Duration, known func(Desired))
}

// Desired holds all declarations and the state of their sources.
type Desired struct {
	// Revision is branch@sha1:commit, or the revisions of several sources separated by spaces. It is empty if no source
	// could be read. It is used only for reports on the run: a cluster shows the revision of its own source.
	Revision string
	// Signer is the signer of the revision, if signatures are verified.
	Signer string
	// Clusters are the declared clusters. Several sources may declare the same cluster; see ResolveOwners.
	Clusters []Declaration
	// Sources lists all sources, whether or not they could be read.
	Sources []SourceState
	// Warnings are warnings about the sources.
	Warnings []string
	// Problems lists the problems with declarations. Each problem concerns one declaration or, if Cluster is empty, an
	// unknown number of declarations.
	Problems []report.Problem
	// Unread is the reason why no source could be read. If a single source could not be read, the reason is in its
	// SourceState.
	Unread error
	// Contested lists the clusters, as namespace/name, that several sources declare although none of them has declared
	// the cluster before; see ResolveOwners.
	Contested []string
	// Namespaces limits the namespaces in which clusters may be declared. This run does not manage clusters in other
	// namespaces.
	Namespaces Namespaces
	// Refuses returns the pod settings of a declaration that are not allowed. It is used if the custom resources are
	// the declarations, because there is then no source with a policy.
	Refuses Policy
	// Confirmed lists the revisions whose removals have been confirmed.
	Confirmed []string
	// Live is set if the custom resources are the declarations and there is no other source.
	Live bool
}

// Declaration is a declared cluster.
type Declaration struct {
	// Cluster is the cluster with defaults applied.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as in the source, without defaults: the fields that server-side apply owns.
	Applied map[string]any
	// Source is the name of the source that declares the cluster, and Revision is its revision.
	Source, Revision string
	// Where is the position of the declaration, as a problem without a message.
	Where report.Problem
	// LineOf returns the line of the field at path, or of its nearest known parent.
	LineOf func(path string) int
	// Warnings are warnings about the declaration.
	Warnings []string
}

// Live provides access to the running clusters.
type Live interface {
	// Observe lists the objects of the declared clusters and of clusters that may be declared: if a source could not be
	// read, its last applied declarations count as declared. A revision that does not descend from the last applied
	// revision is refused, as if the source could not be read. A cluster is observed only when its State is called. An
	// error means that nothing could be observed.
	//
	// If wanted is set, only the clusters that it selects, by namespace/name, need to be listed. Other clusters are
	// returned as last listed, and their State must not be called.
	Observe(ctx context.Context, desired Desired, wanted func(cluster string) bool) (Observed, error)
	// Changes reports changes from now on, until ctx is done. It returns nil if changes are not tracked.
	Changes(ctx context.Context) Changes
	// Close releases the resources held for the passes.
	Close(ctx context.Context) error
}

// Changes reports changes to the clusters' objects.
type Changes interface {
	// Woken returns a channel that receives a value once there are changes to take.
	Woken() <-chan struct{}
	// Take returns the clusters, as namespace/name, that have changed since the last call, and whether the declaration
	// of each may have changed. all reports whether any cluster may have changed, because some changes were missed.
	Take() (clusters map[string]bool, all bool)
}

// Observed is the input of a pass.
type Observed struct {
	// Desired is the desired state without the declarations of refused sources.
	Desired  Desired
	Clusters []Cluster
	// Removals are the unconfirmed removals. The affected clusters keep the last applied state.
	Removals []report.Removal
	// Unlisted names the namespaces that could not be listed and the reasons, or is nil if all were listed. Declared
	// clusters in these namespaces also report the error.
	Unlisted error
	// UnlistedIn lists the namespaces that could not be listed. It is unknown whether they contain undeclared clusters.
	UnlistedIn []string
}

// Cluster is a cluster in a pass.
type Cluster interface {
	// Identity returns the namespace and name.
	Identity() (namespace, name string)
	// DeclaredBy returns the name of the source that declared the cluster at the last report, or "" if it is unknown.
	DeclaredBy() string
	// Unwell reports whether the cluster was unhealthy at the last report or has never been reported. Unwell clusters
	// are processed first.
	Unwell() bool
	// State observes the cluster once, and returns its state or the reason why it could not be observed.
	State(ctx context.Context) (decide.State, error)
	// Warnings returns warnings about the declaration.
	Warnings() []string
	// Custom returns the custom resource as listed, or nil if it does not exist. It must not be modified.
	Custom() *v1alpha1.EtcdCluster
	// Changes returns the differences between the live state, as returned by State, and the declaration, and the
	// changes that the next action will make; next may be nil. On error, partial results are returned as well.
	Changes(next decide.Action) ([]report.Change, error)
	// Do executes an action. Having nothing to change is not an error. It returns ErrLocked if another pass is acting.
	Do(ctx context.Context, action decide.Action) (report.Outcome, error)
	// Report records the result of a pass in the cluster's status and events. Without a decision, it only records that
	// the cluster could not be observed. It writes only what is new, and returns it as news.
	Report(ctx context.Context, entry report.Cluster, source SourceStatus) ([]report.News, error)
	// Leave releases the resources held for the pass, which must not use the cluster afterwards. soon means that a
	// later pass will process the cluster again because something is left to do.
	Leave(soon bool)
}

// SourceStatus is the part of a cluster's status that describes its source.
type SourceStatus struct {
	// Source is the source that declares the cluster, or empty if no source does. Revision is the revision of the
	// source that declares or declared the cluster, or empty if the revision is unknown.
	Source, Revision string
	// Committed is the commit time of the revision, or zero if it is unknown.
	Committed time.Time
	// Kin is set if Revision is the revision of the run's only source, which is not the source that declared the
	// cluster but has the same location.
	Kin bool
	// Error is the error from reading the source. It is empty if the source could be read or is unknown.
	Error string
}

// ErrLocked is returned if another pass is acting on the cluster.
var ErrLocked = errors.New("another pass is acting on this cluster")

// SetupError is an error that retrying cannot resolve: something must be set up first, such as permissions.
type SetupError struct{ Err error }

func (e SetupError) Error() string { return e.Err.Error() }
func (e SetupError) Unwrap() error { return e.Err }
