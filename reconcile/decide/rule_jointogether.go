package decide

import (
	"slices"
	"strings"

	"quorate.dev/quorate/internal/etcdversion"
)

// Two members may join at the same time only if every member of the cluster has always run with max-learners. etcd does
// not check that limit when a learner is requested. Each member checks its own limit when it applies the change (etcd:
// ValidateConfigurationChange). A member with a lower limit would reject a change that the others accepted, and its
// list would differ from then on. A new member that receives an old log also applies the log with its own limit. So the
// setting is never inferred from a file, which may be newer than the running process. It is tied to the token, which
// cannot be changed: from the bootstrap on, the token is in the record, in the StatefulSet and on every volume.
const (
	// together is the suffix of the token of a cluster whose members have all been started with maxLearners.
	together = "-l2"
	// maxLearners is enough to grow from one member to three, and from three to five.
	maxLearners = 2
)

// withMaxLearners is the first version that supports more than one learner. In etcd 3.5 the limit is one, regardless of
// the configuration file.
var withMaxLearners = etcdversion.Must("3.6.0")

// FoundingToken returns the token, built from a nonce, of a cluster that is about to be bootstrapped with the etcd
// version. A cluster bootstrapped with etcd 3.5 can always be downgraded to etcd 3.5, and always grows by one member at
// a time.
func FoundingToken(nonce, version string) string {
	if v, err := etcdversion.Parse(version); err == nil && v.AtLeast(withMaxLearners) {
		return nonce + together
	}
	return nonce
}

// MaxLearners returns the max-learners setting that every member of the given version has and has always had, or zero
// if it was never set.
func (r Record) MaxLearners(version etcdversion.Version) int {
	if !strings.HasSuffix(r.Token, together) || !version.AtLeast(withMaxLearners) {
		return 0
	}
	return maxLearners
}

// joinTogether adds a second learner once the first has started on its data. Until then, the first learner compares the
// list in its file with etcd's list, which must not change (hard case H18). Two learners that start at the same time
// each wait for the other to respond, for up to seven seconds (etcd's request timeout: isCompatibleWithCluster). If
// Quorate waited until the first learner is a voter, etcd would require that voter to be connected for five seconds
// before it accepts the next learner. If anything, including etcd itself, prevents the second learner from joining, the
// first joins alone, and the second follows.
func joinTogether(s State) (Decision, bool) {
	first, only := s.onlyLearner()
	ordinal, free := s.freeOrdinal()
	if !s.Record.JoinedTogether || !only || !s.startedOnData(first) || !free || !s.empty(ordinal) ||
		hasPod(s.Replica(ordinal)) {
		return Decision{}, false
	}
	if len(s.unsettledBut(first.ID)) > 0 || s.alarmed() || !s.takeLearners(s.Record, maxLearners) || !s.toRun() ||
		s.rolls() || s.triedWithoutProgress(ruleJoinTogether, joinPatience) {
		return Decision{}, false
	}
	return act(AddLearner{ordinal, s.peerURL(ordinal)},
		"%s, %d declared, and %s has started: adding %s as a second learner; %s",
		plural(len(s.Membership.Members), "member", "members"), s.Declared.Replicas, s.nameOf(first),
		s.ReplicaName(ordinal), s.describeResponding())
}

// toJoinTogether reports whether two members may be about to join at the same time. This is recorded before the first
// learner is added: if the second learner is removed again before the next pass, etcd's list does not show that the
// logs contain both.
func (s State) toJoinTogether(r Record) bool {
	return s.Membership.learners() == 0 && !s.adopting() &&
		s.Declared.Replicas >= len(s.Membership.Members)+maxLearners &&
		s.takeLearners(r, maxLearners)
}

// onlyLearner returns the learner, if etcd lists exactly one.
func (s State) onlyLearner() (Member, bool) {
	i := slices.IndexFunc(s.Membership.Members, func(m Member) bool { return m.Learner })
	if !s.Membership.Known || i < 0 || s.Membership.learners() > 1 {
		return Member{}, false
	}
	return s.Membership.Members[i], true
}

// startedOnData reports whether a member has joined, so that the list in its file no longer matters and it starts only
// with its data, and whether its pod runs. The member does not have to respond yet: etcd opens its client port only
// once the member has seen its own name in the log, or seven seconds later if a snapshot contained it (etcd:
// publishV3).
func (s State) startedOnData(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	recorded, _ := s.Record.Member(ordinal)
	r := s.Replica(ordinal)
	runs := r.Pod == PodStarting || r.Pod == PodReady
	return ours && m.Started && recorded.Mode == Sealed && runs && !r.VolumeTerminating && !s.volumeLost(ordinal)
}

// takeLearners reports whether every voter of the recorded cluster is known to allow n learners, and has a database
// that is small enough for a leader to send n times in parallel.
func (s State) takeLearners(r Record, n int) bool {
	declared, err := etcdversion.Parse(s.Declared.Version)
	if err != nil || r.MaxLearners(declared) < n || s.Membership.Downgrade != "" {
		return false
	}
	return !slices.ContainsFunc(s.Membership.Voters(), func(m Member) bool {
		runs, err := etcdversion.ParseRunning(m.Version)
		return err != nil || r.MaxLearners(runs) < n || m.DBSize <= 0 || m.DBSize > smallDatabase
	})
}

// learners counts the non-voting members.
func (m Membership) learners() int {
	n := 0
	for i := range m.Members {
		if m.Members[i].Learner {
			n++
		}
	}
	return n
}

// listsDiffer reports whether two members have joined together and a voter's list differs from etcd's: it may have
// rejected one of them, and would not accept it as a voter.
func (s State) listsDiffer() bool {
	joined := s.Record.JoinedTogether || s.Membership.learners() > 1
	return joined && slices.ContainsFunc(s.Membership.Voters(), func(m Member) bool { return m.Disagrees != "" })
}
