package decide

import (
	"fmt"
	"slices"
	"strings"
)

// WantsOtherPods reports whether the spec of a formed cluster requests a different version or pod template than new
// pods get.
func (s State) WantsOtherPods() bool {
	return s.hasStatefulSet() && !s.founding() && !s.Record.Restoring() &&
		(s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash)
}

// newPodsAsDeclared reports whether a recreated pod matches the declaration.
func (s State) newPodsAsDeclared() bool {
	return s.hasStatefulSet() && s.Objects.RunsVersion == s.Declared.Version &&
		s.Objects.RunsHash == s.Declared.SpecHash
}

// madeOtherwise reports whether a pod was created from a different declaration. The pod's annotations determine this,
// never its image (hard cases H35, H102).
func (s State) madeOtherwise(r Replica) bool {
	return r.Pod != PodAbsent && r.PodSpecHash+r.PodVersion != "" &&
		(r.PodSpecHash != s.Declared.SpecHash || r.PodVersion != s.Declared.Version)
}

// rolls reports whether pods must be replaced, regardless of whether the rollout has begun.
func (s State) rolls() bool { return s.WantsOtherPods() || s.anyReplica(s.madeOtherwise) }

func (s State) rollout() StartRollout {
	return StartRollout{Version: s.Declared.Version, SpecHash: s.Declared.SpecHash}
}

func versionRefused(s State) (Decision, bool) {
	if !s.rolls() || !s.Membership.Known {
		return Decision{}, false
	}
	refusal, _ := s.judgeVersion()
	if refusal == "" {
		return Decision{}, false
	}
	return block("%s; the cluster keeps running as it is", refusal)
}

// downgrade makes etcd prepare its data for an older minor version before members run that version (etcd: Downgrade
// etcd from v3.6 to v3.5; hard case H39). Missing members are added first, because they cannot join during the
// downgrade.
func downgrade(s State) (Decision, bool) {
	if !s.Membership.Known || s.founding() || s.lacksMember() {
		return Decision{}, false
	}
	target, under := minorOf(s.Declared.Version), s.Membership.Downgrade
	refusal, prepared := s.judgeVersion()
	switch {
	case !s.rolls() || refusal != "" || prepared || s.lacksBackup() || s.heldByAlarm() != "" || !s.knowsData(target):
		return Decision{}, false
	case s.upgrades():
		return wait(recheckSettling, "%s", s.describeRestoring())
	case under == "":
		return act(EnableDowngrade{target.String()}, "git declares %s: preparing etcd's data for %s",
			s.Declared.Version, target)
	}
	return wait(recheckSettling, "etcd is preparing its data for %s: %s", target,
		strings.Join(s.storageVersions(), ", "))
}

// upgrades reports whether git declares a newer minor version than the oldest running version.
func (s State) upgrades() bool {
	runs := s.running()
	return len(runs) > 0 && minorOf(s.Declared.Version).Steps(runs[0].MajorMinor()) > 0
}

func (s State) storageVersions() []string {
	var facts []string
	for _, m := range s.MembersInOrder() {
		facts = append(facts, fmt.Sprintf("%s %s", s.nameOf(m), orUnknown(m.StorageVersion)))
	}
	return facts
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// canRoll reports whether a rollout may proceed: the members are healthy, there are enough of them for restarts, they
// may run the declared version, and neither a missing backup nor an alarm prevents it.
func (s State) canRoll() bool {
	enough := !s.tooFew() || !s.restartsMembers()
	return s.settled() && enough && s.mayRoll() && !s.lacksBackup() && s.heldByAlarm() == "" && !s.adoptionTakenBack()
}

func startRollout(s State) (Decision, bool) {
	if !s.WantsOtherPods() || !s.canRoll() {
		return Decision{}, false
	}
	return act(s.rollout(), "%s", s.describeRollout())
}

// restartsMembers reports whether a member's pod was created from a different declaration. Otherwise a rollout only
// affects members that have not joined yet.
func (s State) restartsMembers() bool {
	return slices.ContainsFunc(s.Membership.Members, func(m Member) bool {
		ordinal, ours := s.OrdinalOf(m)
		return ours && s.madeOtherwise(s.Replica(ordinal))
	})
}

// tooFew reports whether there are still too few members for restarts without interruption, but more members are
// declared.
func (s State) tooFew() bool { return len(s.Membership.Voters()) < 3 && s.Declared.Replicas >= 3 }

func (s State) describeRollout() string {
	if runs := s.Objects.RunsVersion; runs != s.Declared.Version {
		return fmt.Sprintf("git declares etcd %s, but %s is running: updating the pod template, then restarting "+
			"members one at a time",
			s.Declared.Version, runs)
	}
	return "etcd options or pod settings have changed in git: updating the pod template, then restarting members one " +
		"at a time"
}

// rollOneMember restarts the members whose pods were created from a different declaration, one at a time and while all
// members are healthy: followers from the highest ordinal down, the leader last, after a leadership transfer (hard
// cases H40, H104).
func rollOneMember(s State) (Decision, bool) {
	if !s.newPodsAsDeclared() || !s.canRoll() {
		return Decision{}, false
	}
	var outdated []Member
	for _, m := range s.MembersInOrder() {
		if ordinal, ours := s.OrdinalOf(m); ours && s.madeOtherwise(s.Replica(ordinal)) {
			outdated = append(outdated, m)
		}
	}
	if len(outdated) == 0 {
		return Decision{}, false
	}
	if behind := s.behind(); len(behind) > 0 {
		return wait(recheckSettling, "before the next restart, %s", sentence(behind))
	}
	victim := leaderLast(outdated)
	left := fmt.Sprintf("%d of %s must be restarted", len(outdated),
		plural(len(s.Membership.Members), "member", "members"))
	if victim.Leader && len(s.Membership.Voters()) > 1 {
		return s.transferLeadership(victim, func(Member) bool { return true }, "%s, and %s is the leader",
			left, victim.Name)
	}
	ordinal, _ := s.OrdinalOf(victim)
	return act(RestartReplica{ordinal, s.Replica(ordinal).PodUID}, "%s: restarting %s", left, victim.Name)
}

// describeStoppedRollout reports that a rollout has stopped, or returns "".
func (s State) describeStoppedRollout() string {
	if s.WantsOtherPods() || !s.anyReplica(s.madeOtherwise) {
		return ""
	}
	return "; the rollout has stopped, and the other members still use the previous declaration. If the new " +
		"declaration is the cause, revert it in git"
}

// behind returns which members have not caught up with the leader.
func (s State) behind() []string {
	var facts []string
	for _, m := range s.MembersInOrder() {
		if !s.near(m) {
			facts = append(facts, fmt.Sprintf("%s must catch up from index %d to %d", s.nameOf(m), m.Applied,
				s.leader().Applied))
		}
	}
	return facts
}
