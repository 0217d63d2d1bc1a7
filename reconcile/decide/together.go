package decide

import (
	"slices"
	"strings"

	"quorate.dev/quorate/etcdversion"
)

// Two members may join at once where every member of the cluster has always run with max-learners.
// etcd checks that limit not when it is asked for a learner but when a member applies the change,
// each by its own setting (etcd: ValidateConfigurationChange): a member with a lower one would refuse
// what the others have taken, and from then on believe in another list than they. A new member that
// is sent an old log applies it by its own setting, too. So the setting is never inferred from a
// file, which may be newer than what runs. It goes with the token, which stands in the record, in the
// StatefulSet and on every volume from the founding on, and which nobody can change.
const (
	// together ends the token of a cluster whose members have all been started with maxLearners.
	together = "-l2"
	// maxLearners is what growing from one to three, and from three to five, takes.
	maxLearners = 2
)

// withMaxLearners is the first etcdversion.Version that can take more than one learner. In etcd 3.5
// one is the limit, whatever its file says.
var withMaxLearners = etcdversion.Must("3.6.0")

// FoundingToken is the token of a cluster that is about to be founded with that version of etcd, made
// of a nonce. A cluster of etcd 3.5 keeps all ways back, and grows by one member at a time for good.
func FoundingToken(nonce, version string) string {
	if v, err := etcdversion.Parse(version); err == nil && v.AtLeast(withMaxLearners) {
		return nonce + together
	}
	return nonce
}

// MaxLearners is the max-learners of every member of that version of etcd that the cluster has, or
// ever had; zero if it was never set.
func (r Record) MaxLearners(version etcdversion.Version) int {
	if !strings.HasSuffix(r.Token, together) || !version.AtLeast(withMaxLearners) {
		return 0
	}
	return maxLearners
}

// joinTogether adds a second learner beside the first once that has started on its data. Until then, the first compares
// the list in its file with etcd's, which must not change under it (hard case H18); and two that start in the same
// moment each wait for the other's word, for etcd's request timeout of seven seconds (etcd: isCompatibleWithCluster).
// Once the first is a voter, etcd would want it to be connected for five seconds before the next. If anything speaks
// against it, etcd itself included, the first one joins alone, and the next after it.
func joinTogether(s State) (Decision, bool) {
	first, only := s.onlyLearner()
	ordinal, free := s.freeOrdinal()
	if !s.Record.JoinedTogether || !only || !s.startedOnData(first) || !free || !s.empty(ordinal) ||
		hasPod(s.Replica(ordinal)) {
		return Decision{}, false
	}
	if len(s.unsettledBut(first.ID)) > 0 || s.alarmed() || !s.takeLearners(s.Record, maxLearners) || !s.toRun() ||
		s.rolls() || s.triedInVain(ruleJoinTogether, joinPatience) {
		return Decision{}, false
	}
	return act(AddLearner{ordinal, s.peerURL(ordinal)},
		"%s, %d declared, and %s has started: add %s as a learner beside it; %s answer",
		plural(len(s.Membership.Members), "member", "members"), s.Declared.Replicas, s.nameOf(first),
		s.ReplicaName(ordinal), s.describeQuorum())
}

// toJoinTogether reports whether two members may be about to join at once. The record says so before the first is
// added: should the second be gone again by the time that a pass looks, no list of etcd's would tell that their logs
// hold both.
func (s State) toJoinTogether(r Record) bool {
	return s.Membership.learners() == 0 && s.Declared.Replicas >= len(s.Membership.Members)+maxLearners &&
		s.takeLearners(r, maxLearners)
}

// onlyLearner is the learner, if there is just one on etcd's list.
func (s State) onlyLearner() (Member, bool) {
	i := slices.IndexFunc(s.Membership.Members, func(m Member) bool { return m.Learner })
	if !s.Membership.Known || i < 0 || s.Membership.learners() > 1 {
		return Member{}, false
	}
	return s.Membership.Members[i], true
}

// startedOnData reports whether a member has joined, so that its file's list matters no more, and starts on its data or
// not at all; and whether its pod runs. It need not answer yet: etcd opens its port for clients only once the member
// has seen its own name in the log, or, where it was sent that in a snapshot, seven seconds later (etcd: publishV3).
func (s State) startedOnData(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	recorded, _ := s.Record.Member(ordinal)
	r := s.Replica(ordinal)
	runs := r.Pod == PodStarting || r.Pod == PodReady
	return ours && m.Started && recorded.Mode == Sealed && runs && !r.VolumeTerminating && !s.volumeLost(ordinal)
}

// takeLearners reports whether every voter of the recorded cluster is known to allow that many learners, and has
// little enough data for a leader to send that often at once.
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

// learners counts the members without a vote.
func (m Membership) learners() int {
	n := 0
	for i := range m.Members {
		if m.Members[i].Learner {
			n++
		}
	}
	return n
}

// listsDiffer reports whether two members have joined at once, and a voter believes in another list
// than etcd's: it may have refused one of them, and would not take it for a voter.
func (s State) listsDiffer() bool {
	joined := s.Record.JoinedTogether || s.Membership.learners() > 1
	return joined && slices.ContainsFunc(s.Membership.Voters(), func(m Member) bool { return m.Disagrees != "" })
}
