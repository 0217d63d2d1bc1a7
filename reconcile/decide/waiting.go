package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Waited is something that passes wait for, or try in vain, and since when they have changed
// nothing meanwhile. It is kept in the status, so that a wait outlives the process, and is written
// down only when it begins, when it ends, and now and then in between.
type Waited struct {
	// Rule that waits.
	Rule string `json:"rule"`
	// For is what exactly it waits for, such as the members that are not well; empty if the rule
	// says it all.
	For string `json:"for,omitempty"`
	// Since when it is waited for.
	Since time.Time `json:"since"`
	// Seen is when a pass last wrote down that it still is.
	Seen time.Time `json:"seen"`
}

const (
	// mostWaits are kept beside each other: rules that take turns without changing anything each go
	// on waiting.
	mostWaits = 10
)

// insist returns a decision to wait, or to try once more what has changed nothing, as what it is
// once that has gone on for too long: a Block. It does not come by itself, so a person is needed.
func (s State) insist(d Decision, why string) Decision {
	w, found := s.waited(d)
	if !found || s.Now.Sub(w.Since) < s.patienceFor(d) {
		return d
	}
	if why != "" {
		why = " (" + why + ")"
	}
	d.Message = fmt.Sprintf("%s%s; nothing has come of it since %s: %s", d.Message, why,
		w.Since.UTC().Format(time.RFC3339), s.wayOut(d))
	d.Verdict, d.Action, d.Recheck, d.overdue = Block, nil, 0, true
	return d
}

// InVain is the decision of a pass whose action has changed nothing: the action goes on being
// tried, but if it has been so for long, a person has to know. why is what was said instead.
func InVain(s State, d Decision, why string) Decision {
	if d.Verdict != Act {
		return d
	}
	return s.insist(d, strings.Join(strings.Fields(why), " "))
}

// waited is what is on record about what a decision waits for.
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

// triedInVain reports whether passes have tried what a rule says for that long, and nothing has come of it.
func (s State) triedInVain(rule string, least time.Duration) bool {
	w, tried := s.waited(Decision{Rule: rule})
	return tried && s.Now.Sub(w.Since) >= least
}

// WaitsSince is since when passes have waited for what a decision about this state waits for; zero if it waits for
// nothing, or that is not known.
func (s State) WaitsSince(d Decision) time.Time {
	if d.Verdict != Wait && !d.overdue {
		return time.Time{}
	}
	w, _ := s.waited(d)
	return w.Since
}

// outdated reports whether nobody has looked for so long that what was waited for then says nothing
// about now.
func (s State) outdated(w Waited) bool { return s.Now.Sub(w.Seen) > unrelated }

// Waits is what the status should say after a pass: what it waits for, beside what earlier passes
// have waited for since anything was last changed. What changes something, is done, or is a
// person's turn for another reason has waited for nothing.
func Waits(s State, d Decision, changed bool) []Waited {
	if changed && !d.asksNext || d.Verdict == Done || d.Verdict == Block && !d.overdue {
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

// turnedSince reports whether another was asked for what is tried in vain since it was last written down that it is.
func (s State) turnedSince(w Waited) bool {
	turn := s.lastTurn(w.Rule).Since
	return w.Seen.Before(turn) && !turn.After(s.Now)
}

func (w Waited) compare(other Waited) int {
	return cmp.Or(w.Since.Compare(other.Since), cmp.Compare(w.Rule, other.Rule), cmp.Compare(w.For, other.For))
}
