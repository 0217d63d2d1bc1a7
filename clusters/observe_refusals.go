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

// recent is the maximum age of the last attempt to create a pod. The StatefulSet controller waits up to seventeen
// minutes between attempts.
const recent = 20 * time.Minute

// findRefused determines why a pod of the StatefulSet is not created. It reads events only while a pod is missing. If
// events cannot be read, it reports only that.
func (c *cluster) findRefused(ctx context.Context) {
	missing := c.missing()
	if len(missing) == 0 || c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning {
		return
	}
	set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet)
	events, err := c.kube().FailedCreates(ctx, set)
	for _, ordinal := range missing {
		if err != nil {
			c.slot(ordinal).PodMessage = podstate.OneLine(fmt.Sprintf("cannot tell why it was not created: %v", err))
			continue
		}
		if why := refusal(events, c.state.ReplicaName(ordinal), c.state.Now); why != "" {
			c.slot(ordinal).PodRefused = why
		}
	}
}

// missing returns the ordinals whose pod is missing, except those whose claim must be deleted first.
func (c *cluster) missing() []int {
	var ordinals []int
	for ordinal := range min(c.state.Objects.RunsReplicas, objects.MaxOrdinal+1) { // may be scaled manually
		if r := c.state.Replica(ordinal); r.Pod == decide.PodAbsent && !r.VolumeTerminating {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// slot returns the replica with the given ordinal, and adds it if necessary.
func (c *cluster) slot(ordinal int) *decide.Replica {
	i := slices.IndexFunc(c.state.Replicas, func(r decide.Replica) bool { return r.Ordinal == ordinal })
	if i < 0 {
		c.state.Replicas = append(c.state.Replicas, decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent})
		i = len(c.state.Replicas) - 1
	}
	return &c.state.Replicas[i]
}

// refusal returns the reason why the last attempt to create a pod or its claim failed, or "".
func refusal(events []eventsv1.Event, pod string, now time.Time) string {
	var last eventsv1.Event
	for _, e := range events {
		note := strings.ToLower(e.Note) // the first letter differs between Kubernetes versions
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
