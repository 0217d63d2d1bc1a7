package decide

import (
	"cmp"
	"fmt"
	"slices"

	"quorate.dev/quorate/internal/etcdversion"
)

// restartBroken recreates, from the newest declaration, the pod of a member that does not run, regardless of other
// problems: this repairs a broken rollout (hard cases H48, H101). A pod without a running container does not serve, but
// it may recover by itself. It is therefore recreated only if another pod runs with the newest declaration, or if no
// pod has failed with it, and never because of a brief failure alone. A pod that can never get its volume is also
// recreated.
func restartBroken(s State) (Decision, bool) {
	for _, r := range slices.Backward(s.replicasInOrder()) {
		if s.waitsInVain(r) {
			return act(RestartReplica{r.Ordinal, r.PodUID},
				"pod %s was scheduled before its claim existed, so it can never get its volume; recreating the pod",
				s.ReplicaName(r.Ordinal))
		}
		_, recorded := s.Record.Member(r.Ordinal)
		if !recorded || !s.broken(r) || !s.outlastsPatience(r) || s.lacksBackup() {
			continue
		}
		if s.newPodsAsDeclared() && s.mayRestart(r) && (s.mayMoveTo() || s.anyReplica(s.onTrial)) {
			return s.moveOne(r)
		}
		if s.WantsOtherPods() && (s.mayRoll() || s.stepBegun()) && !s.adoptionTakenBack() {
			return act(s.rollout(), "%s is not running (%s); rolling out the declared pod template",
				s.ReplicaName(r.Ordinal), s.describePod(r))
		}
	}
	return Decision{}, false
}

// moveOne recreates a broken pod from the current declaration if another pod already runs with it, or if no other pod
// is on trial with it.
func (s State) moveOne(r Replica) (Decision, bool) {
	for _, before := range s.replicasInOrder() {
		if !s.anyReplica(s.holdsAsDeclared) && s.onTrial(before) {
			return wait(recheck, "%s is not running; it will be recreated from the current spec once %s has "+
				"proved healthy (%s)", s.ReplicaName(r.Ordinal), s.ReplicaName(before.Ordinal), s.describePod(before))
		}
	}
	return act(RestartReplica{r.Ordinal, r.PodUID},
		"%s is not running (%s); recreating it from the current spec", s.ReplicaName(r.Ordinal), s.describePod(r))
}

// waitsInVain reports whether a pod can never get its volume and is not running. A volume that is being deleted may be
// the member's, unless a different volume is recorded. Such a volume is kept as long as the pod exists, so the pod does
// not count as waiting in vain.
func (s State) waitsInVain(r Replica) bool {
	m, _ := s.listedAt(r.Ordinal)
	keeps := r.VolumeTerminating && !s.volumeLost(r.Ordinal)
	return r.PodUnbound && r.Pod == PodPending && r.PodUID != "" && !keeps && !m.Answers && r.ClusterID == 0
}

// broken reports whether a pod created from a different declaration does not run etcd, but might run it with the
// current declaration. A member that etcd has removed can never run again. A member that the others report as leader
// runs etcd, even if Quorate cannot reach it.
func (s State) broken(r Replica) bool {
	m, listed := s.listedAt(r.Ordinal)
	removed := s.Membership.Known && s.Formed() && !listed
	if removed || m.Leader || s.volumeLost(r.Ordinal) || r.Stranded != "" || r.VolumeTerminating {
		return false
	}
	return s.stuck(r) && r.PodUID != "" && !m.Answers && r.ClusterID == 0 && s.madeOtherwise(r)
}

// stuck reports whether a pod does not come up. A starting pod may have a lot of data to read, so its time is limited
// only while the other members serve.
func (s State) stuck(r Replica) bool {
	since := s.Now.Sub(r.PodSince)
	switch {
	case r.Pod == PodFailing:
		return true
	case r.PodSince.IsZero():
		return false
	}
	return r.Pod == PodPending && since >= pendingPatience ||
		r.Pod == PodStarting && since >= patience && s.Membership.Known
}

// outlastsPatience reports whether a broken pod has failed for longer than the kubelet takes to recover it. A shorter
// failure is enough if nothing depends on the pod: other members serve with the current declaration, or no member has
// ever had a vote.
func (s State) outlastsPatience(r Replica) bool {
	serves := s.Membership.Known && s.Membership.HasQuorum()
	return r.Pod != PodFailing || s.neverFormed() || serves && s.anyReplica(s.runsAsDeclared) || s.failsForGood(r)
}

// neverFormed reports whether no member has ever had a vote, so that no data can be lost yet.
func (s State) neverFormed() bool {
	return s.founding() && s.Membership.ClusterID == 0 && !s.anyReplica(inCluster)
}

// failsForGood reports whether a pod has failed for longer, or more often, than it would because of a temporary
// problem.
func (s State) failsForGood(r Replica) bool {
	failed := s.Now.Sub(r.PodSince)
	enough := failed >= patience || failed >= crashPatience && r.PodCrashes >= crashLoopThreshold
	return r.Pod == PodFailing && !r.PodSince.IsZero() && enough
}

// runsAsDeclared reports whether a pod was created from the current declaration and is ready, or its member responds.
func (s State) runsAsDeclared(r Replica) bool {
	m, _ := s.listedAt(r.Ordinal)
	return s.madeAsDeclared(r) && (r.Pod == PodReady || m.Answers)
}

func (s State) madeAsDeclared(r Replica) bool {
	return r.Pod != PodAbsent && r.PodVersion == s.Declared.Version && r.PodSpecHash == s.Declared.SpecHash
}

// holdsAsDeclared reports whether etcd in a pod created from the current declaration serves, or has run long enough for
// a crash to show and is only waiting for other members to form a quorum.
func (s State) holdsAsDeclared(r Replica) bool {
	lacksOthers := r.Pod == PodStarting && r.ClusterID != 0 && !r.PodStarted.IsZero() &&
		s.Now.Sub(r.PodStarted) >= crashPatience
	return s.runsAsDeclared(r) || s.madeAsDeclared(r) && lacksOthers
}

// mayMoveTo reports whether members may be moved to the current declaration: a pod runs with it, or no pod has failed
// with it. A starting pod does not count as failed.
func (s State) mayMoveTo() bool {
	return s.anyReplica(s.holdsAsDeclared) || !s.anyReplica(s.failsAsDeclared)
}

// describeHeldBack returns why members that do not run are not moved to the current declaration, or "".
func (s State) describeHeldBack() string {
	if !s.newPodsAsDeclared() || s.mayMoveTo() ||
		!s.anyReplica(func(r Replica) bool { return s.counts(r) && s.broken(r) }) {
		return ""
	}
	return "; pods created from the current spec are not running either, so the other pods keep their earlier spec. " +
		"If the spec is the cause, revert it in git. Any pod that you delete is recreated from the current spec"
}

// describeNotMoved returns why members that do not run keep the etcd version of their pods, or "".
func (s State) describeNotMoved() string {
	target, err := etcdversion.Parse(s.Declared.Version)
	for _, r := range s.replicasInOrder() {
		_, recorded := s.Record.Member(r.Ordinal)
		if !recorded || !s.broken(r) || err != nil {
			continue
		}
		refusal, prepared := s.judgeVersion()
		lack, _ := s.describeLackingBackup()
		switch {
		case lack != "":
			return "; " + lack
		case s.newPodsAsDeclared() && !s.mayRestart(r):
			return fmt.Sprintf("; %s is not restarted with etcd %s: %s", s.ReplicaName(r.Ordinal), target,
				cmp.Or(s.skips(r, target), "its data is not prepared for that version"))
		case !s.WantsOtherPods() || s.stepBegun():
			continue
		case refusal != "":
			return fmt.Sprintf("; etcd %s is not rolled out: %s", target, refusal)
		case !prepared:
			return fmt.Sprintf("; etcd %s is not rolled out while a member is not responding. To restart that member "+
				"with the other declared changes, declare a %s release", target, minorOf(s.Objects.RunsVersion))
		}
	}
	return ""
}

// failsAsDeclared reports whether a pod created from the current declaration does not come up, and its volume is not
// the reason.
func (s State) failsAsDeclared(r Replica) bool {
	return s.madeAsDeclared(r) && s.counts(r) && (s.failsForGood(r) || r.Pod == PodPending && s.stuck(r))
}

// onTrial reports whether it is still uncertain whether a pod will come up with the current declaration. As long as
// nothing can be lost, only a pod that has just crashed is on trial.
func (s State) onTrial(r Replica) bool {
	ran := s.Now.Sub(r.PodStarted)
	switch {
	case !s.counts(r):
		return false
	case s.neverFormed():
		crashed := r.Pod == PodFailing && !s.failsForGood(r) ||
			r.Pod == PodStarting && r.PodCrashes > 0 && ran < crashPatience
		return s.madeAsDeclared(r) && crashed
	case r.Pod == PodAbsent:
		return !r.VolumeTerminating && r.PodRefused == ""
	case r.Pod == PodTerminating:
		return s.Now.Before(r.PodGoing)
	case !s.madeAsDeclared(r):
		return false
	case r.Pod == PodStarting:
		doubtful := r.PodCrashes > 0 || s.anyReplica(s.failsAsDeclared)
		return r.ClusterID == 0 && ran < startPatience || doubtful && ran < crashPatience
	}
	return r.Pod == PodFailing && !s.failsForGood(r) || r.Pod == PodPending && !s.stuck(r)
}

// counts reports whether a replica belongs to a recorded member on a usable volume, so that the declaration is the
// likely reason for a failure. A replica that finds no data, or no cluster to join, does not count.
func (s State) counts(r Replica) bool {
	_, recorded := s.Record.Member(r.Ordinal)
	return recorded && !r.NoPeers && !s.volumeLost(r.Ordinal) && r.Stranded == "" && !r.NoData
}
