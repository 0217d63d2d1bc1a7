package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Events returns the events of a pass, with the reporting host and the time. They are about a newly held removal, the
// decision, expiring certificates, rewritten fields, and backups.
func Events(
	custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, t targets.Target, entry report.Cluster,
	host string, at time.Time,
) []kube.Event {
	by := kube.Event{Reason: entry.Decision.Rule, Action: entry.Decision.Rule, Instance: host, At: at}
	var events []kube.Event
	if t.Held != "" && changed(custom, status, v1alpha1.ConditionRemovalHeld) {
		held := by
		held.Warning, held.Reason, held.Action = true, v1alpha1.ConditionRemovalHeld, v1alpha1.ConditionRemovalHeld
		held.Note = strings.Join(t.Warnings, "; ")
		events = append(events, held)
	}
	events = append(events, eventsOfDecision(custom, status, entry, by)...)
	events = append(events, expiryEvents(custom, status, by)...)
	events = append(events, rewrittenEvents(custom, status, by)...)
	events = append(events, spaceEvents(custom, status, by)...)
	events = append(events, backupEvents(custom, status, by)...)
	for i := range events {
		events[i].Note = printable.Line(events[i].Note)
		events[i].At = at.Add(time.Duration(i)) // the name of an event contains its time
	}
	return events
}

func eventsOfDecision(
	custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, entry report.Cluster, event kube.Event,
) []kube.Event {
	switch {
	case entry.State.Declared.Orphaned != "" && changed(custom, status, v1alpha1.ConditionOrphaned):
		event.Warning, event.Note = true, entry.Decision.Message
	case entry.Error != "" && changed(custom, status, v1alpha1.ConditionReady):
		event.Warning, event.Note = true, entry.Error
	case entry.Outcome != nil && entry.Outcome.Changed && entry.Decision.Action != nil:
		event.Action = decide.KindOf(entry.Decision.Action)
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

// changed reports whether a condition differs from the previous one.
func changed(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, kind string) bool {
	before := meta.FindStatusCondition(custom.Status.Conditions, kind)
	after := meta.FindStatusCondition(status.Conditions, kind)
	if before == nil || after == nil {
		return true
	}
	return before.Status != after.Status || before.Reason != after.Reason || before.Message != after.Message
}
