package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// changeEtcd returns the writes of actions that change etcd. Without a leader, etcd cannot be changed. A request that
// etcd refuses is not a write.
func (w *World) changeEtcd(s decide.State, action decide.Action) []write {
	r, id := w.reachable()
	if r == nil || w.announced(id) != s.Membership.ClusterID {
		return nil
	}
	switch a := action.(type) {
	case decide.AddLearner:
		if w.slotTaken(s, a) {
			return nil
		}
		return w.addLearner(r, a)
	case decide.PromoteLearner:
		if m := r.byID(a.ID); m != nil && m.learner && w.indexOf(*m)*10 >= w.lastIndex(r)*9 {
			return []write{{"promote " + a.Name, func() { w.promote(r, m) }}}
		}
	case decide.RemoveMember:
		if m := r.byID(a.ID); m != nil && w.mayRemove(r, *m) {
			return append(w.announce(s, a), write{fmt.Sprintf("remove member %s", a.ID),
				func() { w.judgeRelease(r, *m); w.watchCopies(r, *m); w.removeMember(r, a.ID) }})
		}
	case decide.MoveLeader:
		if m := r.byID(a.To); m != nil && r.leader == a.From && !w.stuck.loyal && w.mayLead(r, *m) {
			return []write{{fmt.Sprintf("move leader to %s", a.To), func() { w.moveLeader(r, *m) }}}
		}
	case decide.DisarmAlarm:
		if slices.Contains(r.alarms, decide.Alarm(a)) {
			return []write{{fmt.Sprintf("disarm %s of %s", a.Kind, a.ID), func() { r.disarm(decide.Alarm(a)) }}}
		}
	case decide.Defragment:
		return w.defragment(s, r, a)
	case decide.EnableDowngrade, decide.CancelDowngrade:
		return changeDowngrade(r, a)
	}
	return nil
}

// changeDowngrade returns the writes that begin a downgrade by one minor version, or cancel it.
func changeDowngrade(r *raft, action decide.Action) []write {
	switch a := action.(type) {
	case decide.EnableDowngrade:
		if target := minorOf(a.Version); r.downgrade == 0 && target == r.version-1 {
			return []write{{"enable downgrade to " + a.Version, func() { r.downgrade = target }}}
		}
	case decide.CancelDowngrade:
		if r.downgrade != 0 {
			return []write{{"cancel downgrade", func() { r.downgrade = 0 }}}
		}
	}
	return nil
}

// announce returns the write that records a removal in advance, if the remaining members would be too few to show that
// the removal was intended.
func (w *World) announce(s decide.State, a decide.RemoveMember) []write {
	announced, err := decide.AnnouncedRecord(s, a.ID)
	if err != nil || !decide.NeedsAnnouncement(s, a.ID) {
		return nil
	}
	return []write{w.apply(w.configMap(), announced)}
}

// addLearner adds a learner to etcd. With strict reconfiguration checks, etcd refuses while a voter is down, and allows
// only one learner unless all members have always allowed two. The second learner is not added before the first has
// started and is sealed.
func (w *World) addLearner(r *raft, a decide.AddLearner) []write {
	p, running := w.pods[a.Ordinal]
	if keepsVolume := running && !p.terminating && w.volumes[a.Ordinal].terminating; r.byOrdinal(a.Ordinal) != nil ||
		keepsVolume {
		return nil
	}
	if a.PeerURL != w.peerURL(a.Ordinal) {
		w.violate("%s is added with peer URL %s", w.replicaName(a.Ordinal), a.PeerURL)
	}
	learners := 0
	for _, m := range r.members {
		recorded, _ := w.record.Member(m.ordinal)
		if !m.learner && !r.isUp(m.id) {
			return nil
		}
		if !m.learner {
			continue
		}
		if learners++; learners >= w.allowedLearners(r) {
			w.violate("%s is added although the maximum number of learners exists", w.replicaName(a.Ordinal))
			return nil
		}
		if !m.started || recorded.Mode != decide.Sealed {
			return nil
		}
	}
	return []write{{"add member " + w.replicaName(a.Ordinal),
		func() { w.enlist(r, member{ordinal: a.Ordinal, learner: true}) }}}
}

// togetherToken is the token suffix of a cluster whose members have always allowed two learners.
const togetherToken = "-l2"

// foundingToken returns the token of a cluster to bootstrap.
func (w *World) foundingToken() string {
	token := w.next("t")
	if w.Together {
		return decide.FoundingToken(token, w.Declared.Version)
	}
	return token
}

// allowedLearners returns the number of learners that all members certainly allow.
func (w *World) allowedLearners(r *raft) int {
	for _, m := range r.voters() {
		if minorOf(w.pods[m.ordinal].version) < takesTwoLearners || r.downgrade != 0 {
			return 1
		}
	}
	if strings.HasSuffix(w.record.Token, togetherToken) {
		return 2
	}
	return 1
}

// enlist adds a member to the list. The member does not have a name before it starts.
func (w *World) enlist(r *raft, m member) {
	m.id = hash(w.next("m"), m.ordinal)
	beside := slices.ContainsFunc(r.members, func(m member) bool { return m.learner })
	r.joinedTogether = r.joinedTogether || m.learner && beside
	r.members = append(r.members, m)
}

// promote gives a learner a vote, which counts for quorum immediately.
func (w *World) promote(r *raft, m *member) {
	m.learner = false
	w.commit(r)
	w.elect(r)
	if !r.serves() {
		w.violate("%s is promoted, which loses quorum", w.replicaName(m.ordinal))
	}
}

// mayRemove reports whether etcd allows the removal of a member. A voter may be removed only if the other voters have
// quorum without it.
func (w *World) mayRemove(r *raft, m member) bool {
	if m.learner {
		return true
	}
	rest, up := 0, 0
	for _, other := range r.voters() {
		if other.id != m.id {
			rest++
		}
		if other.id != m.id && r.isUp(other.id) {
			up++
		}
	}
	switch {
	case rest == 0:
		w.violate("the last voter would be removed")
		return false
	case up < decide.Quorum(rest):
		w.violate("member %s would be removed, but the others do not have quorum", m.id)
		return false
	}
	return true
}

// removeMember removes a member from the list. A running member exits. Its alarms stay active.
func (w *World) removeMember(r *raft, id decide.ID) {
	r.members = slices.DeleteFunc(r.members, func(m member) bool { return m.id == id })
	r.removed = append(r.removed, id)
	w.commit(r)
	w.runEtcd()
	w.judgePods()
}

// commit gives a majority of the voters the whole log, even if they are slow. Every change to the member list requires
// this.
func (w *World) commit(r *raft) {
	last, have := uint64(0), 0
	for _, m := range r.voters() {
		last = max(last, w.indexOf(m), r.acknowledged)
	}
	voters := r.voters()
	slices.SortStableFunc(voters, func(a, b member) int { return cmp.Compare(w.indexOf(b), w.indexOf(a)) })
	for _, m := range voters {
		if r.isUp(m.id) && have < decide.Quorum(len(voters)) {
			w.extend(m, last)
			have++
		}
	}
}

// moveLeader gives a voter the whole log and transfers leadership to it.
func (w *World) moveLeader(r *raft, to member) {
	w.extend(to, w.lastIndex(r))
	r.leader = to.id
}

// mayLead reports whether leadership can be transferred to a member.
func (w *World) mayLead(r *raft, m member) bool {
	return !m.learner && r.isUp(m.id) && !w.slow[m.ordinal]
}
