package clusters

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/report"
)

// mostEvents is the maximum number of events to report for a cluster. Older events are omitted.
const mostEvents = 12

// Events returns the newest events about an observed cluster, newest last: about its custom resource, its StatefulSet,
// and its members' pods and claims. This includes events about deleted objects with the same names.
func (l *Live) Events(ctx context.Context, c report.Cluster) ([]report.Event, error) {
	names := objects.NamesOf(c.Name)
	about := []objects.Identity{{Kind: v1alpha1.Kind, Name: c.Name}, {Kind: "StatefulSet", Name: names.StatefulSet}}
	for _, r := range c.State.Replicas {
		about = append(about, objects.Identity{Kind: "Pod", Name: c.State.ReplicaName(r.Ordinal)},
			objects.Identity{Kind: "PersistentVolumeClaim", Name: objects.VolumeClaimName(c.Name, r.Ordinal)})
	}
	var events []report.Event
	for _, object := range about {
		of, err := l.at(c.Namespace).EventsOf(ctx, object.Kind, c.Namespace, object.Name)
		if err != nil {
			return nil, fmt.Errorf("list events of %s: %w", object, err)
		}
		for _, e := range of {
			events = append(events, eventOf(object, e))
		}
	}
	slices.SortStableFunc(events, func(a, b report.Event) int { return a.At.Compare(b.At) })
	return events[max(0, len(events)-mostEvents):], nil
}

// eventOf converts an event for display. Events from the older API have their time and count in different fields.
func eventOf(object objects.Identity, e eventsv1.Event) report.Event {
	event := report.Event{
		Object: object.String(), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Note: e.Note,
		At: e.EventTime.Time, Count: int(max(e.DeprecatedCount, 1)),
	}
	if e.Series != nil {
		event.At, event.Count = e.Series.LastObservedTime.Time, int(e.Series.Count)
	}
	for _, other := range []metav1.Time{e.DeprecatedLastTimestamp, e.CreationTimestamp} {
		if event.At.IsZero() {
			event.At = other.Time
		}
	}
	return event
}
