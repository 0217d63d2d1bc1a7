package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Event is an event about one cluster: an action or a finding.
type Event struct {
	// Warning selects the event type Warning instead of Normal.
	Warning bool
	// Reason is the rule that applied.
	Reason string
	// Action is the action in one word, or the Reason if there was no action.
	Action string
	Note   string
	// Instance is the reporting instance, such as the host on which it runs.
	Instance string
	// At is the time of the event. It also makes the event's name unique for its cluster.
	At time.Time
}

// noteLimit is the maximum length of a note in events.k8s.io/v1, in bytes.
const noteLimit = 1024

// CreateEvent creates an event about a cluster.
func (c *Client) CreateEvent(ctx context.Context, cluster *v1alpha1.EtcdCluster, e Event) error {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace,
			Name:      fmt.Sprintf("%s.%x", cluster.Name, e.At.UnixNano()),
		},
		EventTime:           metav1.MicroTime{Time: e.At},
		ReportingController: "quorate.dev/quorate",
		ReportingInstance:   e.Instance,
		Action:              e.Action,
		Reason:              e.Reason,
		Type:                kind,
		Note:                cut(e.Note, noteLimit),
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind,
			Namespace: cluster.Namespace, Name: cluster.Name, UID: cluster.UID,
			ResourceVersion: cluster.ResourceVersion,
		},
	}
	if _, err := c.typed.EventsV1().Events(cluster.Namespace).
		Create(ctx, event, metav1.CreateOptions{FieldManager: Manager}); err != nil {
		return fmt.Errorf("report %s in an event: %w", e.Reason, err)
	}
	return nil
}

// FailedCreates lists the events that explain why the pods and claims of a StatefulSet could not be created.
func (c *Client) FailedCreates(ctx context.Context, set *appsv1.StatefulSet) ([]eventsv1.Event, error) {
	events, err := c.events(ctx, set.Namespace,
		fields.Set{"regarding.kind": "StatefulSet", "regarding.name": set.Name, "reason": "FailedCreate"})
	return slices.DeleteFunc(events, func(e eventsv1.Event) bool { return e.Regarding.UID != set.UID }), err
}

// EventsOf lists the events about an object, in no particular order. It may include events about a deleted object with
// the same name.
func (c *Client) EventsOf(ctx context.Context, kind, namespace, name string) ([]eventsv1.Event, error) {
	return c.events(ctx, namespace, fields.Set{"regarding.kind": kind, "regarding.name": name})
}

func (c *Client) events(ctx context.Context, namespace string, about fields.Set) (events []eventsv1.Event, err error) {
	list := listing("Events", c.typed.EventsV1().Events(namespace).List, gathers[*eventsv1.Event](&events))
	if err := list(ctx, metav1.ListOptions{FieldSelector: about.String()}); err != nil {
		return nil, err
	}
	return events, nil
}

// cut truncates s to at most limit bytes, but never within a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
