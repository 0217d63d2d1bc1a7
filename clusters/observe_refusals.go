package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// recent is how old the last attempt at a pod may be: the StatefulSet controller waits for up to
// seventeen minutes between two.
const recent = 20 * time.Minute

// findRefused looks for why the StatefulSet does not make the pods that it wants. Its events are
// read only while such a pod is missing. Where they cannot be read, that is said, and nothing is
// concluded.
func (c *cluster) findRefused(ctx context.Context) {
	missing := c.missing()
	if len(missing) == 0 || c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning {
		return
	}
	set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet)
	events, err := c.kube().FailedCreates(ctx, set)
	for _, ordinal := range missing {
		if err != nil {
			c.slot(ordinal).PodMessage = podstate.OneLine(fmt.Sprintf("why it is not made is not known: %v", err))
			continue
		}
		if why := refusal(events, c.state.ReplicaName(ordinal), c.state.Now); why != "" {
			c.slot(ordinal).PodRefused = why
		}
	}
}

// missing are the ordinals that the StatefulSet wants a pod in, and has none, although no claim has
// to go first.
func (c *cluster) missing() []int {
	var ordinals []int
	for ordinal := range min(c.state.Objects.RunsReplicas, objects.MaxOrdinal+1) { // anybody may have scaled it
		if r := c.state.Replica(ordinal); r.Pod == decide.PodAbsent && !r.VolumeTerminating {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// slot returns the replica of an ordinal, made if it is not there.
func (c *cluster) slot(ordinal int) *decide.Replica {
	i := slices.IndexFunc(c.state.Replicas, func(r decide.Replica) bool { return r.Ordinal == ordinal })
	if i < 0 {
		c.state.Replicas = append(c.state.Replicas, decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent})
		i = len(c.state.Replicas) - 1
	}
	return &c.state.Replicas[i]
}

// refusal is why a pod, or its claim, could not be made when that was last tried; empty if nothing
// says so.
func refusal(events []eventsv1.Event, pod string, now time.Time) string {
	var last eventsv1.Event
	for _, e := range events {
		note := strings.ToLower(e.Note) // Kubernetes has changed its mind about the first letter
		about := strings.HasPrefix(note, "create pod "+pod+" in ") ||
			strings.HasPrefix(note, fmt.Sprintf("create claim %s%s for ", objects.VolumeClaimPrefix, pod))
		if about && now.Sub(lastSeen(e)) < recent && !lastSeen(e).Before(lastSeen(last)) {
			last = e
		}
	}
	_, why, found := strings.Cut(last.Note, " failed error: ")
	if !found {
		why = last.Note
	}
	return podstate.OneLine(why)
}

func lastSeen(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return slices.MaxFunc([]time.Time{e.EventTime.Time, e.DeprecatedLastTimestamp.Time}, time.Time.Compare)
}
