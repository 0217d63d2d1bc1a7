package clusters

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/visible"
)

// Report implements reconcile.Cluster: status if it is news, an event for what was done, and one
// when the cluster gets stuck.
func (c *cluster) Report(ctx context.Context, entry report.Cluster, source reconcile.SourceState) error {
	if entry.Decision.Verdict == decide.Block {
		c.live.foundBlocked(c.target.key())
	}
	custom := c.own.custom
	if custom == nil {
		return nil // nothing to write into: no custom resource has been applied yet
	}
	if !c.own.readable() {
		return nil // what is not known may not be written over
	}
	status, events := c.newReport(entry, source)
	var failures []error
	if worthWriting(custom.Status, status) {
		// What another pass has told since this one looked is newer.
		if err := c.kube().ApplyStatus(ctx, custom, status); !kube.IsConflict(err) {
			failures = append(failures, err)
		}
	}
	for _, event := range events {
		failures = append(failures, c.kube().CreateEvent(ctx, custom, event))
	}
	return c.live.advised(custom.Namespace, errors.Join(failures...))
}

// newReport is what there is to tell of a pass: the status, and the events.
func (c *cluster) newReport(entry report.Cluster, source reconcile.SourceState) (v1alpha1.EtcdClusterStatus, []kube.Event) {
	custom := c.own.custom
	status := newStatus(custom, &c.target.cluster, entry, source)
	c.target.addRemoval(&status, custom.Status, metav1.NewTime(entry.State.Now))
	makeReadable(&status)
	events := c.events(custom, status, entry)
	events = append(events, expiryEvents(custom, status, kube.Event{Action: entry.Decision.Rule, Instance: c.live.holder.Host, At: time.Now()})...)
	for i := range events {
		events[i].Note = visible.Line(events[i].Note)
	}
	return status, events
}

// makeReadable makes what others have a say in fit for a terminal, and for a status: over a longer
// message than the API takes, it refuses all of it.
func makeReadable(status *v1alpha1.EtcdClusterStatus) {
	for i := range status.Conditions {
		status.Conditions[i].Message = visible.Line(status.Conditions[i].Message)
	}
	status.Members, status.Version, status.Leader = slices.Clone(status.Members), visible.Line(status.Version), visible.Line(status.Leader)
	for i := range status.Members {
		m := &status.Members[i]
		m.Name, m.Version, m.Message, m.Alarms = visible.Line(m.Name), visible.Line(m.Version), visible.Line(m.Message), slices.Clone(m.Alarms)
		for n := range m.Alarms {
			m.Alarms[n] = visible.Line(m.Alarms[n])
		}
	}
}

// events are those of a pass: one about a removal that is held, as it begins, and one about what
// was decided.
func (c *cluster) events(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, entry report.Cluster) []kube.Event {
	var events []kube.Event
	if c.target.held != "" && changed(custom, status, v1alpha1.ConditionRemovalHeld) {
		events = append(events, kube.Event{
			Warning: true, Reason: v1alpha1.ConditionRemovalHeld, Action: v1alpha1.ConditionRemovalHeld, Instance: c.live.holder.Host, At: time.Now(),
			Note: strings.Join(c.target.warnings, "; "),
		})
	}
	return append(events, c.eventsOfDecision(custom, status, entry)...)
}

func (c *cluster) eventsOfDecision(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, entry report.Cluster) []kube.Event {
	event := kube.Event{Reason: entry.Decision.Rule, Action: entry.Decision.Rule, Instance: c.live.holder.Host, At: time.Now()}
	switch {
	case entry.State.Declared.Orphaned != "" && changed(custom, status, v1alpha1.ConditionOrphaned):
		event.Warning, event.Note = true, entry.Decision.Message
	case entry.Error != "" && changed(custom, status, v1alpha1.ConditionReady):
		event.Warning, event.Note = true, entry.Error
	case entry.Outcome != nil && entry.Outcome.Changed:
		event.Action = reflect.TypeOf(entry.Decision.Action).Name()
		event.Note = fmt.Sprintf("%s; %s", entry.Decision.Message, entry.Outcome.Detail)
	case entry.Decision.Verdict == decide.Block && changed(custom, status, v1alpha1.ConditionStalled):
		event.Warning, event.Note = true, entry.Decision.Message
	case entry.Decision.Rule == decide.Converged && custom.Status.Rule != decide.Converged:
		event.Note = entry.Decision.Message
	default:
		return nil
	}
	return []kube.Event{event}
}

// changed reports whether a condition says something else than before.
func changed(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, kind string) bool {
	before := meta.FindStatusCondition(custom.Status.Conditions, kind)
	after := meta.FindStatusCondition(status.Conditions, kind)
	return before == nil || after == nil || before.Status != after.Status || before.Reason != after.Reason || before.Message != after.Message
}
