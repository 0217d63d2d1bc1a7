package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// State is the state of a commit.
type State string

// The states.
const (
	// Pending means that something is left to do.
	Pending State = "pending"
	// Success means that everything is up to date.
	Success State = "success"
	// Failure means that a declaration is invalid, a cluster is blocked, or the pass failed.
	Failure State = "failure"
)

// Status is the status of a commit.
type Status struct {
	State State
	// Description is the reason, on one line of at most LongestDescription bytes.
	Description string
}

// LongestDescription is the maximum length that all git hosts accept, in bytes.
const LongestDescription = 140

// standing is the state of one cluster.
type standing struct {
	// source is the source that declares the cluster, if there are several sources.
	source string
	state  State
	reason string
}

// Board holds the state of all clusters as reported by the passes of a run. A pass may cover only some of the clusters.
type Board struct {
	clusters map[string]standing
	// unseen is set if some clusters have not been reported by any pass yet.
	unseen bool
	last   report.Report
}

// Observe processes the report of a pass. whole is false if the report covers only slow clusters.
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
	maps.DeleteFunc(b.clusters, func(key string, _ standing) bool {
		namespace, _, _ := strings.Cut(key, "/")
		return !known[key] && !rep.MayOmit(namespace)
	})
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

// Commit returns the last commit read from a source, and its status. source is empty if the run has only one source.
// commit is empty if the source was not read or is not a repository. The status does not reveal other sources.
func (b *Board) Commit(source string) (commit string, status Status) {
	text := b.last.Revision
	for _, s := range b.last.Sources {
		if s.Source == source {
			text = s.Revision
		}
	}
	r, ok := revision.Parse(text)
	if !ok || !r.IsFull() || len(b.last.Sources) > 0 && source == "" {
		return "", Status{}
	}
	status = b.status(source)
	status.Description = printable.Short(status.Description, LongestDescription)
	return r.Hash(), status
}

// Revision returns the revision of the last pass.
func (b *Board) Revision() string { return b.last.Revision }

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
		if !several || r.Label == source {
			reasons = append(reasons, r.String())
		}
	}
	switch {
	case b.last.Error != "" && several: // the error may be about a different source
		reasons = append(reasons, "the run failed; see its log")
	case b.last.Error != "":
		reasons = append(reasons, b.last.Error)
	}
	return b.verdict(reasons, pending, all)
}

// verdict returns the status for the given reasons for failure and the numbers of pending clusters and of all clusters.
func (b *Board) verdict(reasons []string, pending, all int) Status {
	switch {
	case len(reasons) > 1:
		return Status{Failure, andMore(reasons[0], len(reasons)-1)}
	case len(reasons) == 1:
		return Status{Failure, reasons[0]}
	case pending > 0:
		return Status{Pending, fmt.Sprintf("%d of %s not up to date", pending,
			decide.Count(all, "cluster"))}
	case b.unseen:
		return Status{Pending, "not all clusters have been processed yet"}
	case all == 0:
		return Status{Success, "no clusters are declared"}
	case all == 1:
		return Status{Success, "1 cluster is up to date"}
	}
	return Status{Success, fmt.Sprintf("%d clusters are up to date", all)}
}

// andMore appends the number of additional reasons to a reason, and shortens the reason if necessary.
func andMore(reason string, more int) string {
	rest := fmt.Sprintf(" (and %d more)", more)
	return printable.Short(reason, LongestDescription-len(rest)) + rest
}
