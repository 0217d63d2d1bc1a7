package decide

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Repeated is an action that passes carried out repeatedly, because the next pass found it reverted each time: by an
// admission policy, another controller or an operator. It is kept in the status of the custom resource.
type Repeated struct {
	// Rule that decided the action.
	Rule string `json:"rule"`
	// What the action does, without IDs that differ each time.
	What string `json:"what"`
	// Times it was carried out.
	Times int `json:"times"`
	// Last is when it was last carried out.
	Last time.Time `json:"last"`
}

// subject returns what a decision does, without current IDs and UIDs: the same text means that the same action is
// repeated.
func (s State) subject(d Decision) string {
	target := s.Declared.Version + "/" + s.Declared.SpecHash
	switch a := d.Action.(type) {
	case RestartReplica:
		return fmt.Sprintf("%s %d for %s", KindOf(a), a.Ordinal, target)
	case DeleteVolume:
		return fmt.Sprintf("%s %d", KindOf(a), a.Ordinal)
	case AddLearner:
		return fmt.Sprintf("%s %d", KindOf(a), a.Ordinal)
	case RemoveMember:
		return KindOf(a) + " " + a.Name
	case PromoteLearner:
		return KindOf(a) + " " + a.Name
	case ApplyObjects, Declare:
		// The message names the objects and how they differ from this declaration. If the declaration changes again,
		// nothing was reverted.
		return KindOf(a) + " " + digest(d.Message+s.Declared.Digest)
	case Bootstrap, Seal:
		return KindOf(a) + " " + digest(d.Message) // the objects that are missing, what is not recorded of the members
	case DisarmAlarm, StartRollout, StopReplicas:
		return a.String()
	case RenewCertificates, StopPods, EnableDowngrade, CancelDowngrade, MoveLeader, StartBackup, DiscardBackup,
		StartRestore, StopRestore, FinishRestore, StartRecovery, StopRecovery, FinishRecovery, DeleteObjects:
		return KindOf(a)
	}
	return ""
}

// digest returns a short digest of a text, which a status keeps as it is, however long or hostile the text.
func digest(text string) string {
	sum := fnv.New64a()
	sum.Write([]byte(text))
	return fmt.Sprintf("%016x", sum.Sum64())
}

// repeats returns how often passes have carried out the action of a decision in a row, or the zero value.
func (s State) repeats(d Decision) Repeated {
	i := slices.IndexFunc(s.Repeated, func(r Repeated) bool { return r.Rule == d.Rule && r.What == s.subject(d) })
	if d.Verdict != Act || i < 0 {
		return Repeated{}
	}
	return s.Repeated[i]
}

// keepsBeingUndone reports whether the action of a decision was carried out so often in a row that it does not last.
func (s State) keepsBeingUndone(d Decision) bool { return s.repeats(d).Times >= undoneThreshold }

// mayRetry reports whether an action that keeps being reverted may be tried again.
func (s State) mayRetry(d Decision) bool {
	last := s.repeats(d).Last
	return YetToCome(last, s.Now) || s.Now.Sub(last) >= undonePause
}

// firstThatLasts returns the decision of the first rule that applies. Actions that keep being reverted come last, so
// that they do not prevent repairs of members. Every rule is safe without the rules before it.
func firstThatLasts(s State) Decision {
	var undone []Decision
	for _, r := range rules {
		d, applies := r.ask(s)
		switch {
		case !applies:
		case s.keepsBeingUndone(d):
			undone = append(undone, d)
		default:
			return s.afterUndone(d, undone)
		}
	}
	return s.afterUndone(Decision{Rule: Converged, Verdict: Done, Message: "up to date: " + s.describe()}, undone)
}

// afterUndone returns the decision in addition to actions that keep being reverted: other actions first, then
// occasionally one of those, and otherwise a Block that names them.
func (s State) afterUndone(d Decision, undone []Decision) Decision {
	if len(undone) == 0 {
		return d
	}
	if d.Verdict != Act {
		if i := slices.IndexFunc(undone, s.mayRetry); i >= 0 {
			return undone[i]
		}
	}
	if d.Verdict == Done {
		return keepsBeingUndone(undone[0], undone[1:])
	}
	d.Message += describeUndone(undone)
	return d
}

// keepsBeingUndone returns the Block for an action that does not last.
func keepsBeingUndone(d Decision, others []Decision) Decision {
	again, _ := block("%s keeps being reverted: it was done at least %d times in a row. Find out what reverts it (an "+
		"admission policy, another controller or a person) and stop it. Quorate retries it from time to time: %s%s",
		KindOf(d.Action), undoneThreshold, d.Message, describeUndone(others))
	again.Rule = d.Rule
	return again
}

func describeUndone(undone []Decision) string {
	var text strings.Builder
	for _, d := range undone {
		fmt.Fprintf(&text, "; %s keeps being reverted (%s)", KindOf(d.Action), d.Message)
	}
	return text.String()
}

// Retried returns the decision of a pass that has retried an action that keeps being reverted: it remains a Block.
func Retried(s State, d Decision) Decision {
	if !s.keepsBeingUndone(d) {
		return d
	}
	return keepsBeingUndone(d, nil)
}

// Repeats returns the repeated actions that the status must record after a pass with decision d, which has changed
// something if changed is set. An action that the pass no longer requested has lasted.
func Repeats(s State, d Decision, changed bool) []Repeated {
	if d.Rule == LockedElsewhere || len(s.Repeated) == 0 && !changed {
		return s.Repeated
	}
	var list []Repeated
	for _, r := range rules {
		wanted, _ := r.ask(s)
		if wanted.Verdict != Act {
			continue
		}
		entry, done := s.repeats(wanted), changed && wanted.Rule == d.Rule
		if done {
			entry = Repeated{Rule: wanted.Rule, What: s.subject(wanted), Times: entry.Times + 1, Last: s.Now}
		}
		if done || s.keepsBeingUndone(wanted) {
			list = append(list, entry)
		}
	}
	return list
}
