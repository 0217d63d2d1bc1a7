// Package notify determines the news in reports of passes, and the status of a commit, and formats them for webhooks,
// chats and git hosts. It is pure; the package deliver sends the results.
package notify

import (
	"slices"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

// Event is a change to notify about.
type Event struct {
	// Cluster is the namespace/name of the cluster that it is about; empty if it is about a source.
	Cluster string `json:"cluster,omitempty"`
	// Warning is set if the event needs attention.
	Warning bool `json:"warning"`
	// Reason is the rule that decided, or the condition that the event is about.
	Reason string `json:"reason"`
	// Message is the text, on one line.
	Message string `json:"message"`
}

// String returns the event on one line.
func (e Event) String() string {
	if e.Cluster == "" {
		return e.Reason + ": " + e.Message
	}
	return e.Cluster + ": " + e.Reason + ": " + e.Message
}

// longestMessage is how many bytes of a message are sent.
const longestMessage = 1024

// News returns the events of a report: what the pass has reported in the clusters and the previous pass had not. News
// about a source that many clusters share is included once. Problems with declarations are included together with the
// revision that has them, because passes keep no other record of them.
//
// Passes only remember the contents of the clusters' status, so if two consecutive passes find the same, the second has
// no news.
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
