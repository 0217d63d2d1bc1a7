package decide

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Repeated is an action that passes carried out repeatedly, because a later pass found it reverted each time: by an
// admission policy, another controller or an operator. If What is preempted, it instead counts the actions of other
// rules that preceded a repair. It is kept in the status of the custom resource.
type Repeated struct {
	// Rule is the rule that decided the action.
	Rule string `json:"rule"`
	// What is a description of the action, without IDs that change between attempts, or the constant preempted.
	What string `json:"what"`
	// Times is how often the action was carried out.
	Times int `json:"times"`
	// Last is when the action was last carried out.
	Last time.Time `json:"last"`
}

// subject describes the action of a decision, without current IDs and UIDs: the same text means that the same action is
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
	case Defragment:
		return KindOf(a) + " " + a.Name
	case ApplyObjects, Declare:
		// The message names the objects and how they differ from this declaration and from these members and volumes.
		// If any of them changes, nothing was reverted.
		return KindOf(a) + " " + digest(d.Message+s.Declared.Digest+s.identities(s.slotsInUse()))
	case Seal:
		return KindOf(a) + " " + digest(d.Message+s.identities(a.Members))
	case Bootstrap:
		return KindOf(a) + " " + digest(d.Message) // the message names the missing objects
	case DisarmAlarm, StartRollout, StopReplicas:
		return a.String()
	case RenewCertificates, StopPods, EnableDowngrade, CancelDowngrade, MoveLeader, StartBackup, DiscardBackup,
		StartRestore, StopRestore, FinishRestore, StartRecovery, StopRecovery, FinishRecovery, DeleteObjects:
		return KindOf(a)
	}
	return ""
}

// slotsInUse returns the slots with a member, a pod or a volume.
func (s State) slotsInUse() Ordinals {
	var slots Ordinals
	for ordinal := range s.listed() {
		slots = slots.With(ordinal)
	}
	for _, r := range s.Replicas {
		slots = slots.With(r.Ordinal)
	}
	return slots
}

// identities returns the members and volumes in the given slots as text.
func (s State) identities(slots Ordinals) string {
	var text strings.Builder
	members := s.listed()
	for _, ordinal := range slots.List() {
		fmt.Fprintf(&text, " %d=%s/%s", ordinal, members[ordinal].ID, s.Replica(ordinal).VolumeUID)
	}
	return text.String()
}

// digest returns a short digest of a text. The digest can be stored in a status unchanged, however long or hostile the
// text is.
func digest(text string) string {
	sum := fnv.New64a()
	sum.Write([]byte(text))
	return fmt.Sprintf("%016x", sum.Sum64())
}

// repeats returns how often passes have carried out the action of a decision, or the zero value.
func (s State) repeats(d Decision) Repeated {
	i := slices.IndexFunc(s.Repeated, func(r Repeated) bool { return r.Rule == d.Rule && r.What == s.subject(d) })
	if d.Verdict != Act || i < 0 {
		return Repeated{}
	}
	return s.Repeated[i]
}

// keepsBeingUndone reports whether the action of a decision was carried out so often that it is evidently being
// reverted.
func (s State) keepsBeingUndone(d Decision) bool { return s.repeats(d).Times >= undoneThreshold }

// mayRetry reports whether an action that keeps being reverted may be tried again. Stopping something that must not run
// is tried in every pass.
func (s State) mayRetry(d Decision) bool {
	switch d.Action.(type) { //nolint:gochecksumtype // all others wait
	case StopPods, StopReplicas, StopRestore, StopRecovery:
		return true
	}
	return !s.isRecent(s.repeats(d))
}

// isRecent reports whether an entry was last counted within the pause. An entry from the future does not count.
func (s State) isRecent(r Repeated) bool {
	return s.Now.Sub(r.Last) < undonePause && !YetToCome(r.Last, s.Now)
}

// mayBeSkipped lists the rules that do not hold up later rules while their action keeps being reverted: the later rules
// are safe without that action. No other rule is skipped, because later rules would change something that it protects,
// such as a suspended cluster or members that trust a different CA.
var mayBeSkipped = append(
	[]string{"RenewCertificates", ruleSeal, "Bootstrap", ruleApplyObjects, "DisarmAlarm", ruleDefragment, "BackUp"},
	membershipRules...)

// firstThatLasts returns the decision of the first rule that applies. Actions that keep being reverted come last, and a
// repair that other actions have delayed comes first, so that neither prevents member repairs.
func firstThatLasts(s State) Decision {
	var undone []Decision
	for i, r := range rules {
		d, applies := r.ask(s)
		switch {
		case !applies:
		case s.keepsBeingUndone(d) && !slices.Contains(mayBeSkipped, r.Name):
			return s.afterUndone(Decision{Verdict: Done}, append(undone, d))
		case s.keepsBeingUndone(d):
			undone = append(undone, d)
		default:
			return s.afterUndone(s.orDelayedRepair(d, rules[i+1:]), undone)
		}
	}
	return s.afterUndone(Decision{Rule: Converged, Verdict: Done, Message: "up to date: " + s.describe()}, undone)
}

// needsRecord reports whether a decision only waits, or changes members. Changing members does not help while the
// record keeps being reverted: a replacement would never be completed.
func needsRecord(d Decision) bool {
	return d.Verdict == Wait || d.Verdict == Act && slices.Contains(membershipRules, d.Rule)
}

// membershipRules lists the rules that change members, or restart them for the declaration.
var membershipRules = append([]string{ruleScaleDown, "Downgrade", "PrepareUpgrade", "StartRollout", "RollOneMember"},
	repairs...)

// repairs lists the rules that replace a lost member.
var repairs = []string{"CancelDowngrade", "RestartBroken", "CleanUp", ruleReplaceMember, ruleJoinTogether,
	"PromoteLearner", "ScaleUp"}

// mayRecur lists the rules whose actions can be needed again and again without the cluster making progress.
var mayRecur = []string{"RenewCertificates", ruleSeal, ruleApplyObjects, "CancelDowngrade", "DisarmAlarm"}

// preempted is the value of What in an entry that counts the actions that preceded a repair. It is not the subject of
// any action.
const preempted = "preempted"

// delay returns how many actions have recently preceded a repair, or the zero value.
func (s State) delay(rule string) Repeated {
	i := slices.IndexFunc(s.Repeated, func(r Repeated) bool { return r.Rule == rule && r.What == preempted })
	if i < 0 || !s.isRecent(s.Repeated[i]) {
		return Repeated{}
	}
	return s.Repeated[i]
}

// orDelayedRepair returns the decision of a later rule if it is a repair that other actions have preceded too often,
// and otherwise d.
func (s State) orDelayedRepair(d Decision, later []rule) Decision {
	if d.Verdict != Act || len(s.Repeated) == 0 || !slices.Contains(mayRecur, d.Rule) {
		return d
	}
	for _, r := range later {
		repair, applies := r.ask(s)
		delayed := slices.Contains(repairs, r.Name) && s.delay(r.Name).Times >= delayThreshold
		switch {
		case !applies || s.keepsBeingUndone(repair):
		case repair.Verdict != Act || !delayed && !slices.Contains(mayRecur, r.Name):
			return d // a repair must not precede, for example, a declared stop
		case delayed:
			repair.Message += fmt.Sprintf("; %s follows, because other actions have repeatedly delayed this repair",
				KindOf(d.Action))
			return repair
		}
	}
	return d
}

// afterUndone returns the decision if there are also actions that keep being reverted: other actions come first, then
// occasionally a reverted action, and otherwise a Block that names the reverted actions.
func (s State) afterUndone(d Decision, undone []Decision) Decision {
	if len(undone) == 0 {
		return d
	}
	seal := slices.IndexFunc(undone, func(u Decision) bool { return u.Rule == ruleSeal })
	withheld := seal >= 0 && needsRecord(d)
	if d.Verdict != Act || withheld {
		if i := slices.IndexFunc(undone, s.mayRetry); i >= 0 {
			return undone[i]
		}
	}
	switch {
	case d.Verdict == Done:
		return s.blockUndone(undone[0], undone[1:])
	case withheld:
		return s.blockUndone(undone[seal], slices.Concat(undone[:seal], undone[seal+1:]))
	}
	d.Message += describeUndone(undone)
	return d
}

// blockUndone returns the Block for an action that does not last.
func (s State) blockUndone(d Decision, others []Decision) Decision {
	where := ""
	if d.Rule == ruleSeal {
		where = fmt.Sprintf(" in ConfigMap %s-members", s.Name)
	}
	again, _ := block("%s keeps being reverted%s: it was carried out at least %d times. Find and stop the cause (an "+
		"admission policy, another controller or a person). Quorate retries it from time to time: %s%s",
		KindOf(d.Action), where, undoneThreshold, d.Message, describeUndone(others))
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

// Retried returns the decision of a pass that has retried an action that keeps being reverted: the decision remains a
// Block.
func Retried(s State, d Decision) Decision {
	if !s.keepsBeingUndone(d) {
		return d
	}
	d = s.blockUndone(d, nil)
	d.Message = s.inNamespace(d.Message)
	return d
}

// Repeats returns the repeated actions that the status must record after a pass with decision d, which has changed
// something if changed is set. If the pass no longer requested an action, that action was not reverted. A Seal is
// remembered for a while, because an older record may be restored more slowly than passes run.
func Repeats(s State, d Decision, changed bool) []Repeated {
	if d.Rule == LockedElsewhere || len(s.Repeated) == 0 && !changed {
		return s.Repeated
	}
	var list []Repeated
	for _, r := range rules {
		wanted, _ := r.ask(s)
		entry, listed := s.repeats(wanted), s.keepsBeingUndone(wanted)
		if changed && wanted.Verdict == Act && wanted.Rule == d.Rule {
			entry = Repeated{Rule: wanted.Rule, What: s.subject(wanted), Times: entry.Times + 1, Last: s.Now}
			listed = true
		}
		what := ""
		if listed {
			list, what = append(list, entry), entry.What
		}
		list = append(list, s.remembered(r.Name, what)...)
		if entry := s.delayAfter(d, wanted, r.Name, changed); entry.Times > 0 {
			list = append(list, entry)
		}
	}
	return list
}

// mostSeals is the maximum number of Seals that are remembered.
const mostSeals = 8

// remembered returns, for rule Seal, the recent Seals other than but, newest first.
func (s State) remembered(rule, but string) []Repeated {
	var list []Repeated
	for _, r := range s.Repeated {
		if rule == ruleSeal && r.Rule == rule && r.What != but && s.isRecent(r) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Repeated) int { return b.Last.Compare(a.Last) })
	return list[:min(len(list), mostSeals)]
}

// delayAfter returns the delay of a repair after a pass with decision d. Once the repair acts, or nothing is left to
// do, it is no longer delayed.
func (s State) delayAfter(d, wanted Decision, rule string, changed bool) Repeated {
	entry := s.delay(rule)
	switch {
	case !slices.Contains(repairs, rule) || d.Verdict == Done || changed && d.Rule == rule:
		return Repeated{}
	case changed && wanted.Verdict == Act && slices.Contains(mayRecur, d.Rule):
		return Repeated{Rule: rule, What: preempted, Times: entry.Times + 1, Last: s.Now}
	}
	return entry
}
