package targets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// FlagMaxDeletions is the flag that limits how many clusters may start to be deleted with their data.
const FlagMaxDeletions = "--max-deletions"

// granted is the place of a cluster among the clusters whose deletion may start.
type granted struct {
	owner string
	// blocked is set if a pass of this process has found, after the place was granted, that the deletion cannot start.
	// Before that, the cluster's status may be older than the place.
	blocked bool
}

// Deletions counts the cluster deletions with data that have been started, either by a process in all its passes or in
// each Round.
type Deletions struct {
	// Most is the maximum for each owner. nil means no limit.
	Most *int
	// Shard is the subset of the clusters on which this process acts. Clusters of other shards also take up places,
	// including clusters whose deletion was started by other shards. Therefore all shards grant the same places, and
	// together they grant no more than a single process would.
	Shard shard.Shard
	// Round is set in long-running processes: counting restarts at each multiple of this duration, at the same time in
	// all processes. Several processes may act on the same clusters, so every ongoing deletion takes a place. Zero
	// means that counting never restarts.
	Round time.Duration

	mu     sync.Mutex
	places map[inventory.Key]*granted
	began  time.Time // start of the current round
}

// recount resets the count at the start of each round. It ignores a recorded round that lies in the future, because the
// clock was ahead when it was recorded. Setting the clock back slightly does not start a round twice.
func (d *Deletions) recount(now time.Time) {
	if d.Round <= 0 {
		return
	}
	if began := now.Truncate(d.Round); began.After(d.began) || d.began.Sub(began) > d.Round {
		clear(d.places)
		d.began = began
	}
}

// owner returns the owner whose clusters are counted together: the source or, if the custom resources are the source,
// the namespace. A user who may edit one namespace must not be able to use up the deletions of another namespace.
func (t Target) owner(live bool) string {
	if live {
		return t.Cluster.Namespace
	}
	return t.Source
}

// Limit lets at most Most clusters per owner start to be deleted with their data. It counts all passes of this process
// together and follows the order of the targets. Clusters that a pass has found blocked come last and take turns, so
// that they do not prevent other deletions from starting. Waiting clusters are kept as last applied, with a problem
// that explains what to do. Clusters whose deletion has already started are not counted, because a half-finished
// deletion is useless.
func (d *Deletions) Limit(targets []Target, owned inventory.ByCluster, live bool) []Target {
	if d.Most == nil {
		return targets
	}
	begins := map[string][]int{}
	for i, t := range targets {
		if t.beginsDeletion(owned.Of(t.Key()), live) {
			begins[t.owner(live)] = append(begins[t.owner(live)], i)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recount(time.Now())
	if d.places == nil {
		d.places = map[inventory.Key]*granted{}
	}
	d.takeOthers(targets, owned, live)
	most := *d.Most
	for owner, list := range begins {
		waiting := d.grant(owner, targets, list, owned, live, most)
		all := d.grantedTo(owner) + len(waiting)
		for _, i := range waiting {
			targets[i] = targets[i].waitForDeletion(owned.Of(targets[i].Key()).Custom, live, all, most)
		}
	}
	return targets
}

// takeOthers gives places to clusters whose deletion was started by other processes, unless they are blocked.
func (d *Deletions) takeOthers(targets []Target, owned inventory.ByCluster, live bool) {
	for _, t := range targets {
		k := t.Key()
		own := owned.Of(k)
		others := d.Round > 0 || !d.Shard.Owns(k.String())
		if t.goes(own) && !t.beginsDeletion(own, live) && others && d.places[k] == nil && blockedNow(own.Custom) == "" {
			d.places[k] = &granted{owner: t.owner(live)}
		}
	}
}

// grant gives up to most places to the clusters of an owner whose deletion would start, and returns the clusters that
// must wait.
func (d *Deletions) grant(
	owner string, targets []Target, begins []int, owned inventory.ByCluster, live bool, most int,
) (waiting []int) {
	var able, before, blocked []int // before: was blocked earlier and now waits; blocked: was blocked in the last pass
	for _, i := range begins {
		k := targets[i].Key()
		custom, place := owned.Of(k).Custom, d.places[k]
		switch {
		case place != nil && (live || !place.blocked): // blocked halfway, a deletion seems to start
		case blockedNow(custom) != "":
			delete(d.places, k)
			blocked = append(blocked, i)
		case place != nil:
		case blockedBefore(custom) != "":
			before = append(before, i)
		default:
			able = append(able, i)
		}
	}
	for _, i := range slices.Concat(able, inTurn(before, blocked), blocked) {
		if d.grantedTo(owner) < most {
			d.places[targets[i].Key()] = &granted{owner: owner}
		} else {
			waiting = append(waiting, i)
		}
	}
	return waiting
}

// grantedTo returns the number of places that the clusters of an owner have.
func (d *Deletions) grantedTo(owner string) (n int) {
	for _, place := range d.places {
		if place.owner == owner {
			n++
		}
	}
	return n
}

// FoundBlocked records that a cluster is blocked, so that another cluster can take its place.
func (d *Deletions) FoundBlocked(k inventory.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if place := d.places[k]; place != nil {
		place.blocked = true
	}
}

// inTurn returns the waiting clusters in rotated order, starting after the last cluster that was tried.
func inTurn(waiting, tried []int) []int {
	if len(tried) == 0 {
		return waiting
	}
	next, _ := slices.BinarySearch(waiting, tried[len(tried)-1])
	return slices.Concat(waiting[next:], waiting[:next])
}

// couldNotBegin precedes, in the status of a cluster that waits to be deleted, the reason why the deletion was blocked
// when it was the cluster's turn.
const couldNotBegin = "; in its turn, the deletion could not start: "

// blockedNow returns the reason why a cluster was blocked in the last pass. It returns "" if the cluster was not
// blocked, or was only waiting to be deleted.
func blockedNow(custom *v1alpha1.EtcdCluster) string {
	stalled := stalled(custom)
	if stalled == nil || stalled.Reason == decide.InvalidSpec {
		return ""
	}
	return stalled.Reason + ": " + stalled.Message
}

// blockedBefore returns the reason why a cluster was blocked before it started to wait, or "".
func blockedBefore(custom *v1alpha1.EtcdCluster) string {
	stalled := stalled(custom)
	if stalled == nil {
		return ""
	}
	_, why, _ := strings.Cut(stalled.Message, couldNotBegin)
	return why
}

// stalled returns the Stalled condition if its status is true, or nil.
func stalled(custom *v1alpha1.EtcdCluster) *metav1.Condition {
	if custom == nil {
		return nil
	}
	c := meta.FindStatusCondition(custom.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// beginsDeletion reports whether this pass would start to delete an existing cluster with its data.
func (t Target) beginsDeletion(own *inventory.Listed, live bool) bool {
	custom := own.Custom
	switch {
	case !t.goes(own):
		return false
	case custom == nil || !goesWithData(custom.Spec):
		return true
	case live: // the custom resource is the declaration, so check whether it was acted on
		stopped := custom.Status.Rule == "Stop" || custom.Status.Rule == "NothingRuns"
		return !stopped || custom.Status.ObservedGeneration != custom.Generation
	}
	return false
}

// goes reports whether an existing cluster will be deleted with its data.
func (t Target) goes(own *inventory.Listed) bool {
	leftAlone := t.Orphaned != "" || len(t.Problems) > 0
	nothingThere := own.Applied+own.Pods+own.Claims == 0
	return !leftAlone && !nothingThere && goesWithData(t.Cluster.Spec)
}

// goesWithData reports whether a spec requests deletion of the cluster with its volumes. A suspended cluster is not
// deleted.
func goesWithData(spec v1alpha1.EtcdClusterSpec) bool {
	return spec.Lifecycle == v1alpha1.LifecycleDeleted && spec.Storage.Retention == v1alpha1.RetentionDelete &&
		!spec.Suspend
}

// waitForDeletion keeps a cluster as last applied because this run deletes other clusters of the same owner. all is the
// number of clusters newly declared for deletion, of which most may be deleted.
func (t Target) waitForDeletion(custom *v1alpha1.EtcdCluster, live bool, all, most int) Target {
	waits := t
	if custom != nil && !live {
		waits = lastApplied(custom)
		waits.Warnings = t.Warnings
	}
	owner := "source"
	if live {
		owner = "namespace"
	}
	problem := fmt.Sprintf("lifecycle Deleted with retention Delete: %d clusters in its %s "+
		"are newly declared for deletion with their data, and this cluster is not among the %d that a run may start "+
		"to delete. "+
		"To delete them all, raise %s to %d; otherwise revert this cluster's "+
		"declaration", all, owner, most, FlagMaxDeletions, all)
	if why := cmp.Or(blockedNow(custom), blockedBefore(custom)); why != "" {
		problem += couldNotBegin + why
	}
	waits.Problems = []string{problem}
	return waits
}
