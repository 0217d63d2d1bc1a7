package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Waited is a wait: a condition that passes are waiting for, or an action that they try without success, and the time
// when this began. It is stored in the status, so that it survives the process, and is written only when the wait
// begins, when the wait ends, and occasionally in between.
type Waited struct {
	// Rule is the rule that waits.
	Rule string `json:"rule"`
	// For identifies what the rule is waiting for, such as the unhealthy members, or is empty if the rule's name is
	// enough.
	For string `json:"for,omitempty"`
	// Since is when the wait began.
	Since time.Time `json:"since"`
	// Seen is when a pass last recorded the wait.
	Seen time.Time `json:"seen"`
}

const (
	// mostWaits is the maximum number of waits kept: if rules alternate without changing anything, each rule's wait
	// continues.
	mostWaits = 10
)

// escalate turns a decision to wait, or to retry an action without effect, into a Block once the wait has lasted too
// long, because manual action is then required.
func (s State) escalate(d Decision, why string) Decision {
	w, found := s.waited(d)
	if !found || s.Now.Sub(w.Since) < s.deadlineFor(d) {
		return d
	}
	if why != "" {
		why = " (" + why + ")"
	}
	d.Message = fmt.Sprintf("%s%s; no progress since %s: %s", d.Message, why,
		w.Since.UTC().Format(time.RFC3339), s.remedy(d))
	d.Verdict, d.Action, d.Recheck, d.overdue = Block, nil, 0, true
	return d
}

// NoProgress returns the decision of a pass whose action changed nothing. The action is retried, but after a long time
// the decision becomes a Block. why is the response to the action.
func NoProgress(s State, d Decision, why string) Decision {
	if d.Verdict != Act {
		return d
	}
	d = s.escalate(d, strings.Join(strings.Fields(why), " "))
	d.Message = s.inNamespace(d.Message)
	return d
}

// waited returns the recorded wait that corresponds to a decision.
func (s State) waited(d Decision) (Waited, bool) {
	i := slices.IndexFunc(s.Waited, func(w Waited) bool {
		return w.Rule == d.Rule && w.For == d.waitsFor &&
			!s.outdated(w)
	})
	if i < 0 {
		return Waited{}, false
	}
	return s.Waited[i], true
}

// triedWithoutProgress reports whether passes have tried a rule's action for at least the given time without progress.
func (s State) triedWithoutProgress(rule string, least time.Duration) bool {
	w, tried := s.waited(Decision{Rule: rule})
	return tried && s.Now.Sub(w.Since) >= least
}

// WaitsSince returns when passes began to wait for the reason given in this decision, or zero if the decision does not
// wait or the time is unknown.
func (s State) WaitsSince(d Decision) time.Time {
	if d.Verdict != Wait && !d.overdue {
		return time.Time{}
	}
	w, _ := s.waited(d)
	return w.Since
}

// outdated reports whether the wait was last recorded so long ago that it is unrelated to the current state.
func (s State) outdated(w Waited) bool { return s.Now.Sub(w.Seen) > unrelated }

// Waits returns the waits for the status after a pass: the pass's own wait, and the waits of earlier passes since the
// last change. A decision that changes something, is done, or blocks for a different reason has no waits.
func Waits(s State, d Decision, changed bool) []Waited {
	if changed && !d.asksNext && !s.keepsBeingUndone(d) || d.Verdict == Done || d.Verdict == Block && !d.overdue {
		return nil
	}
	now := Waited{Rule: d.Rule, For: d.waitsFor, Since: s.Now, Seen: s.Now}
	var others []Waited
	for _, w := range s.Waited {
		same := w.Rule == now.Rule && w.For == now.For
		switch {
		case s.outdated(w):
		case same && s.Now.Sub(w.Seen) < noteAgain && !s.turnedSince(w):
			now = w
		case same:
			now.Since = w.Since
		case d.asksNext && s.isTurn(w, d.Rule): // only the last one counts
		default:
			others = append(others, w)
		}
	}
	slices.SortFunc(others, func(a, b Waited) int { return cmp.Or(b.Seen.Compare(a.Seen), a.compare(b)) })
	list := append(others[:min(len(others), mostWaits-1)], now)
	slices.SortFunc(list, Waited.compare)
	return list
}

// turnedSince reports whether leadership was transferred because of an unsuccessful action after the wait was last
// recorded.
func (s State) turnedSince(w Waited) bool {
	turn := s.lastTurn(w.Rule).Since
	return w.Seen.Before(turn) && !turn.After(s.Now)
}

func (w Waited) compare(other Waited) int {
	return cmp.Or(w.Since.Compare(other.Since), cmp.Compare(w.Rule, other.Rule), cmp.Compare(w.For, other.For))
}
