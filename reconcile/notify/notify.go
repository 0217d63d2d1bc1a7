// Package notify says what is news in the reports of passes, and how a commit stands, as others take it: webhooks,
// chats and hosts of git. It is pure; what is sent is sent by the package deliver.
package notify

import (
	"slices"

	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/visible"
)

// Event is one piece of news.
type Event struct {
	// Cluster, as namespace/name, that it is about; empty if it is about a source.
	Cluster string `json:"cluster,omitempty"`
	// Warning: somebody should look at it.
	Warning bool `json:"warning"`
	// Reason is the rule that spoke, or the condition that it is about.
	Reason string `json:"reason"`
	// Message says it on one line.
	Message string `json:"message"`
}

// String says it on one line.
func (e Event) String() string {
	if e.Cluster == "" {
		return e.Reason + ": " + e.Message
	}
	return e.Cluster + ": " + e.Reason + ": " + e.Message
}

// longestMessage is how many bytes of a message are sent.
const longestMessage = 1024

// News are the events of a report: what the pass has told in the clusters and the one before had not. What is said
// in many clusters alike, of their source, is said once. Problems of declarations are news with the revision that has
// them; no pass keeps anything else of them.
//
// What passes remember is in the status of the clusters, and nowhere else, so of two passes in a row that find the
// same, the second has no news.
func News(rep report.Report) []Event {
	var events []Event
	add := func(e Event) {
		e.Reason, e.Message = visible.Short(e.Reason, longestMessage), visible.Short(e.Message, longestMessage)
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
