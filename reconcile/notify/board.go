package notify

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/visible"
)

// State of a commit.
type State string

// The states.
const (
	// Pending: something is left to do.
	Pending State = "pending"
	// Success: all is as declared.
	Success State = "success"
	// Failure: something declared is invalid, or a cluster is blocked, or the pass failed.
	Failure State = "failure"
)

// Status of a commit.
type Status struct {
	State State
	// Description is the reason, on one line of LongestDescription bytes at most.
	Description string
}

// LongestDescription is what all hosts take.
const LongestDescription = 140

// standing is how one cluster stands.
type standing struct {
	// source that declares it, where there are several.
	source string
	state  State
	reason string
}

// Board is how all clusters stand, as the passes of one run have found, of which each may be about some of them.
type Board struct {
	clusters map[string]standing
	// unseen are clusters that no pass has told of.
	unseen bool
	last   report.Report
}

// Observe takes in a report of a pass; whole is false for one about stragglers alone.
func (b *Board) Observe(rep report.Report, whole bool) {
	if b.clusters == nil {
		b.clusters = map[string]standing{}
	}
	for _, c := range rep.Clusters {
		b.clusters[c.Key()] = standingOf(c)
	}
	if !whole {
		return
	}
	b.last = rep
	b.last.Clusters = nil
	known := map[string]bool{}
	for _, c := range rep.Clusters {
		known[c.Key()] = true
	}
	b.unseen = false
	for _, key := range rep.Others {
		known[key] = true
		if _, told := b.clusters[key]; !told {
			b.unseen = true
		}
	}
	if !rep.Unobserved {
		maps.DeleteFunc(b.clusters, func(key string, _ standing) bool { return !known[key] })
	}
}

func standingOf(c report.Cluster) standing {
	s := standing{source: c.Where.Source, state: Success}
	one := report.Report{Clusters: []report.Cluster{c}}
	switch result := one.Result(); {
	case c.Error != "":
		s.state, s.reason = Failure, c.Error
	case result == report.Invalid || result == report.Blocked:
		s.state, s.reason = Failure, c.Decision.Rule+": "+c.Decision.Message
	case c.Pending() || c.BeingFounded():
		s.state = Pending
	}
	if s.reason != "" {
		s.reason = c.Key() + ": " + s.reason
	}
	return s
}

// Commit of a source that was read, by its name where there are several, and how it stands; no commit if it was not
// read, or is no repository. Of other sources, nothing is said.
func (b *Board) Commit(source string) (commit string, status Status) {
	revision := b.last.Revision
	for _, s := range b.last.Sources {
		if s.Source == source {
			revision = s.Revision
		}
	}
	found := atCommit.FindStringSubmatch(revision)
	if found == nil || len(b.last.Sources) > 0 && source == "" {
		return "", Status{}
	}
	status = b.status(source)
	status.Description = visible.Short(status.Description, LongestDescription)
	return found[1], status
}

// Revision that the last pass was about.
func (b *Board) Revision() string { return b.last.Revision }

var atCommit = regexp.MustCompile(`(?:^|@)sha1:([0-9a-f]{40})$`)

func (b *Board) status(source string) Status {
	several := len(b.last.Sources) > 0
	var reasons []string
	for _, p := range b.last.Problems {
		if !several || p.Source == source {
			p.Source = ""
			reasons = append(reasons, p.String())
		}
	}
	all, pending := 0, 0
	for _, key := range slices.Sorted(maps.Keys(b.clusters)) {
		c := b.clusters[key]
		if several && c.source != source {
			continue
		}
		all++
		switch c.state {
		case Failure:
			reasons = append(reasons, c.reason)
		case Pending:
			pending++
		case Success:
		}
	}
	for _, r := range b.last.Removals {
		if !several || r.Source == source {
			reasons = append(reasons, r.String())
		}
	}
	switch {
	case b.last.Error != "" && several: // it may be about another source
		reasons = append(reasons, "the run failed; its log says why")
	case b.last.Error != "":
		reasons = append(reasons, b.last.Error)
	}
	return b.verdict(reasons, pending, all)
}

// verdict is the status that follows from reasons for failure and from how many of all clusters are pending.
func (b *Board) verdict(reasons []string, pending, all int) Status {
	switch {
	case len(reasons) > 1:
		return Status{Failure, andMore(reasons[0], len(reasons)-1)}
	case len(reasons) == 1:
		return Status{Failure, reasons[0]}
	case pending > 0:
		return Status{Pending, fmt.Sprintf("something is left to do for %d of %s", pending,
			decide.Count(all, "cluster"))}
	case b.unseen:
		return Status{Pending, "not all clusters have been looked at yet"}
	case all == 0:
		return Status{Success, "no cluster is declared"}
	case all == 1:
		return Status{Success, "1 cluster is as declared"}
	}
	return Status{Success, fmt.Sprintf("%d clusters are as declared", all)}
}

// andMore leaves room to say how much is left out.
func andMore(reason string, more int) string {
	rest := fmt.Sprintf(" (and %d more)", more)
	return visible.Short(reason, LongestDescription-len(rest)) + rest
}
