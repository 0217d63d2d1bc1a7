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
)

// FlagMaxDeletions is the flag that says how many clusters may newly be deleted with their data.
const FlagMaxDeletions = "--max-deletions"

// granted is the place of a cluster among those whose deletion may begin.
type granted struct {
	owner string
	// blocked: a pass of this process has found since that it cannot begin. Before that, what is
	// known of it is older than the place.
	blocked bool
}

// Deletions counts the clusters that newly begin to be deleted with their data, in all passes of a
// process, or since it counts again.
type Deletions struct {
	// Most is how many of each owner may; nil stands for any number.
	Most *int
	// Shard is the part of the clusters that this process acts on. Those of others take places as its own do, and
	// those whose deletion they have begun as well: so all shards give the same places, and together no more than
	// one process would.
	Shard shard.Shard
	// Round is for a process that goes on forever: it counts again at each multiple of that time, as all others do.
	// Since they may act on the same clusters, whatever is being deleted takes a place. Zero: it counts once.
	Round time.Duration

	mu     sync.Mutex
	places map[inventory.Key]*granted
	began  time.Time // of the present round
}

// recount counts from none where a round begins. One that is yet to come, as the clock was ahead when it began, is
// none; a clock that is only put back a little begins no round twice.
func (d *Deletions) recount(now time.Time) {
	if d.Round <= 0 {
		return
	}
	if began := now.Truncate(d.Round); began.After(d.began) || d.began.Sub(began) > d.Round {
		clear(d.places)
		d.began = began
	}
}

// owner returns the source, whose clusters are counted together. If the custom resources are the source, it returns the
// namespace: a user who may edit one namespace must not use up the deletions of another.
func (t Target) owner(live bool) string {
	if live {
		return t.Cluster.Namespace
	}
	return t.Source
}

// Limit lets no more clusters of each owner begin to be deleted with their data than Most says, in
// all passes of this process together, in the order of the targets; those that a pass has found
// blocked come last and take turns, so that one that cannot begin keeps no other from it. The others
// stay as last applied, with a problem that says how to go on. One whose deletion has begun is not
// counted: half of it is no use to anybody.
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

// takeOthers gives places to the clusters whose deletion others have begun, until it is found blocked.
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

// grant gives places, so many at most, to those of an owner whose deletion begins, and returns
// those that have to wait.
func (d *Deletions) grant(
	owner string, targets []Target, begins []int, owned inventory.ByCluster, live bool, most int,
) (waiting []int) {
	var able, before, blocked []int // before: found blocked and waiting since; blocked: found blocked by the last pass
	for _, i := range begins {
		k := targets[i].Key()
		custom, place := owned.Of(k).Custom, d.places[k]
		switch {
		case place != nil && (live || !place.blocked): // while it is blocked halfway, it looks as if it began
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

// grantedTo is how many places the clusters of an owner have.
func (d *Deletions) grantedTo(owner string) (n int) {
	for _, place := range d.places {
		if place.owner == owner {
			n++
		}
	}
	return n
}

// FoundBlocked notes that a cluster cannot go on, so that the place of its deletion may be
// another's.
func (d *Deletions) FoundBlocked(k inventory.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if place := d.places[k]; place != nil {
		place.blocked = true
	}
}

// inTurn are those that wait, beginning with the one after those that were tried last.
func inTurn(waiting, tried []int) []int {
	if len(tried) == 0 {
		return waiting
	}
	next, _ := slices.BinarySearch(waiting, tried[len(tried)-1])
	return slices.Concat(waiting[next:], waiting[:next])
}

// couldNotBegin is how the status of a cluster that waits for its deletion says what blocked it
// when it had its turn.
const couldNotBegin = "; it could not begin when it had its turn: "

// blockedNow is what the last pass has found a cluster blocked by, other than that it waits for its
// deletion; empty if nothing has.
func blockedNow(custom *v1alpha1.EtcdCluster) string {
	stalled := stalled(custom)
	if stalled == nil || stalled.Reason == "InvalidSpec" {
		return ""
	}
	return stalled.Reason + ": " + stalled.Message
}

// blockedBefore is what a pass has found a cluster blocked by before it began to wait; empty if
// nothing did.
func blockedBefore(custom *v1alpha1.EtcdCluster) string {
	stalled := stalled(custom)
	if stalled == nil {
		return ""
	}
	_, why, _ := strings.Cut(stalled.Message, couldNotBegin)
	return why
}

// stalled is the condition of that name if it is true.
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

// beginsDeletion reports whether a cluster of which there is something is newly to be deleted with
// its data.
func (t Target) beginsDeletion(own *inventory.Listed, live bool) bool {
	custom := own.Custom
	switch {
	case !t.goes(own):
		return false
	case custom == nil || !goesWithData(custom.Spec):
		return true
	case live: // the custom resource declares itself; its status tells whether a pass has stopped it since it says so
		stopped := custom.Status.Rule == "Stop" || custom.Status.Rule == "NothingRuns"
		return !stopped || custom.Status.ObservedGeneration != custom.Generation
	}
	return false
}

// goes reports whether a cluster of which there is something is to be deleted with its data.
func (t Target) goes(own *inventory.Listed) bool {
	leftAlone := t.Orphaned != "" || len(t.Problems) > 0
	nothingThere := own.Applied+own.Pods+own.Claims == 0
	return !leftAlone && !nothingThere && goesWithData(t.Cluster.Spec)
}

// goesWithData reports whether a spec says that the cluster is deleted with its volumes. One that
// is suspended is not, as long as it is.
func goesWithData(spec v1alpha1.EtcdClusterSpec) bool {
	return spec.Lifecycle == v1alpha1.LifecycleDeleted && spec.Storage.Retention == v1alpha1.RetentionDelete &&
		!spec.Suspend
}

// waitForDeletion keeps a cluster as last applied because this run deletes others of its owner. So
// many are newly to be deleted, and so many may be.
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
	problem := fmt.Sprintf("lifecycle Deleted with retention Delete: %d clusters of its %s "+
		"are newly to be deleted with their data, and this one is not among the %d that a run begins with; if all of "+
		"them are meant to go, raise %s to %d; else declare it as it was", all, owner, most, FlagMaxDeletions, all)
	if why := cmp.Or(blockedNow(custom), blockedBefore(custom)); why != "" {
		problem += couldNotBegin + why
	}
	waits.Problems = []string{problem}
	return waits
}
