// Package notify determines the new events in pass reports and the status of a commit, and formats them for webhooks,
// chats and git hosts. It does no I/O: package deliver sends the results.
package notify

import (
	"slices"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

// Event is a change that is worth a notification.
type Event struct {
	// Cluster is the namespace/name of the affected cluster, or empty if the event is about a source.
	Cluster string `json:"cluster,omitempty"`
	// Warning is set if the event needs attention.
	Warning bool `json:"warning"`
	// Reason is the rule of the decision, or the condition that the event concerns.
	Reason string `json:"reason"`
	// Message is the text of the event, on one line.
	Message string `json:"message"`
}

// String returns the event on one line.
func (e Event) String() string {
	if e.Cluster == "" {
		return e.Reason + ": " + e.Message
	}
	return e.Cluster + ": " + e.Reason + ": " + e.Message
}

// longestMessage is the maximum length of an event's message, in bytes.
const longestMessage = 1024

// News returns the events of a report: the changes that the pass has recorded in the statuses of the clusters. An event
// about a source that many clusters share is included only once. Problems with declarations are included only together
// with a new revision, because passes do not record problems anywhere.
//
// Passes remember only what is in the statuses. If two consecutive passes find the same state, the second pass
// therefore has no events.
func News(rep report.Report) []Event {
	var events []Event
	add := func(e Event) {
		e.Reason, e.Message = printable.Short(e.Reason, longestMessage), printable.Short(e.Message, longestMessage)
		if !slices.Contains(events, e) {
			events = append(events, e)
		}
	}
	moved := false
	for _, c := range rep.Clusters {
		for _, n := range c.News {
			e := Event{Cluster: c.Key(), Warning: n.Warning, Reason: n.Reason, Message: n.Message}
			switch n.About {
			case report.AboutRevision:
				moved = true
				continue
			case report.AboutSource:
				e.Cluster = ""
			case report.AboutCluster:
			}
			add(e)
		}
	}
	if moved {
		for _, p := range rep.Problems {
			add(Event{Warning: true, Reason: "InvalidDeclaration", Message: p.String()})
		}
	}
	return events
}
