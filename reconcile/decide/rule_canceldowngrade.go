package decide

import "fmt"

// cancelDowngrade cancels a downgrade that git does not declare, or that keeps a new member from joining: while it is
// enabled, etcd does not accept new members of any version (hard case H132). The rule comes before all rules that wait
// or block for a member, so that reverting the downgrade in git always cancels it. Once all members run, the downgrade
// is prepared again.
func cancelDowngrade(s State) (Decision, bool) {
	under := s.Membership.Downgrade
	if !s.Membership.Known || s.founding() || under == "" {
		return Decision{}, false
	}
	switch {
	case under != minorOf(s.Declared.Version).String() && under != s.clearsLogBy():
		return act(CancelDowngrade{under}, "git declares %s: canceling the downgrade to %s", s.Declared.Version, under)
	case s.lacksMember() && s.hasStatefulSet() && s.newPodsTooOld() == "":
		return act(CancelDowngrade{under}, "members cannot join while the downgrade to %s is enabled: canceling it "+
			"until all declared members are running", under)
	}
	return Decision{}, false
}

// lacksMember reports whether a member must still join: a declared but unlisted member, a listed member that has never
// started, or a spare.
func (s State) lacksMember() bool {
	_, free := s.freeOrdinal()
	_, spare := s.addSpare()
	return s.toRun() && (free || spare || !all(s.Membership.Members, func(m Member) bool { return m.Started }))
}

// newPodsTooOld returns why new members cannot join, or "": new pods run an older minor version than all members, and
// etcd does not accept members older than the cluster.
func (s State) newPodsTooOld() string {
	runs, made := s.running(), minorOf(s.Objects.RunsVersion)
	if len(runs) == 0 || !s.hasStatefulSet() || made.Compare(runs[0].MajorMinor()) >= 0 {
		return ""
	}
	return fmt.Sprintf("new pods run etcd %s, but members older than %s cannot join this cluster. Declare etcd %s "+
		"until all members are running", s.Objects.RunsVersion, runs[0].MajorMinor(), runs[0])
}

// cannotJoin starts the rollout of the declared version if new pods are too old to join but the declared version is
// not. If the declared version is also too old, it blocks. It returns false if a new member can join.
func (s State) cannotJoin(ordinal int, need string) (Decision, bool) {
	why := s.newPodsTooOld()
	if why == "" {
		return Decision{}, false
	}
	asDeclared := s
	asDeclared.Objects.RunsVersion = s.Declared.Version
	held := s.heldByAlarm() != "" || s.adoptionTakenBack()
	if s.WantsOtherPods() && asDeclared.newPodsTooOld() == "" && s.mayRoll() && !held {
		return act(s.rollout(), "%s: using the declared template for new pods, so that %s can join",
			need, s.ReplicaName(ordinal))
	}
	return block("%s: %s cannot be added: %s", need, s.ReplicaName(ordinal), why)
}
