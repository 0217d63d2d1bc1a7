package simulate

import (
	"hash/fnv"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// raft is an etcd cluster: its member list as committed by a quorum.
type raft struct {
	members []member
	// removed contains the members that were removed. They never come back.
	removed []decide.ID
	// up contains the running members that reach each other.
	up     []decide.ID
	leader decide.ID
	// formed is true if the cluster has had a leader, so it may hold data.
	formed bool
	// alarms contains the active alarms, including alarms of removed members.
	alarms []decide.Alarm
	// version is the cluster version, and downgrade is the target of a downgrade, as minor numbers, or zero.
	version, downgrade int
	// acknowledged is the last log index that was acknowledged to clients.
	acknowledged uint64
	// announced is the ID that the cluster reports if it reports the ID of a different cluster. The cluster was then
	// split off from splitFrom at log length splitAt, by --force-new-cluster on the member forcedOn.
	announced, splitFrom, forcedOn decide.ID
	splitAt                        uint64
	// recoveredFrom is the lost cluster from which the cluster was created.
	recoveredFrom decide.ID
	// old is true if its data was on the volumes before the declared cluster was bootstrapped.
	old bool
	// joinedTogether is true if two learners have been listed at the same time.
	joinedTogether bool
	// open is true if the client Service has routed to the cluster.
	open bool
	// excused is true if the record was reverted manually after open was set, and a member has bootstrapped again.
	excused bool
}

type member struct {
	id decide.ID
	// ordinal is negative for a member that is not one of the cluster's replicas.
	ordinal int
	// named is true if its name is known. An added member does not have a name before it starts.
	named bool
	// ran is true if the member has been up, so it may have voted.
	ran     bool
	started bool
	learner bool
	// opens is the time from which the member accepts clients. A new member accepts clients once it has seen its own
	// name in the log, possibly seconds after the other members have.
	opens time.Time
	// inSync is true if the member has been up long enough to follow the leader entry by entry.
	inSync bool
	// byHand is true if the member was added manually.
	byHand bool
	// heldBack is true if the member's volume was lost before the member could be sealed.
	heldBack bool
	// forced is true if the member's data now belongs to a cluster that was split off.
	forced bool
	// downSince is the time when the member stopped running.
	downSince time.Time
	// missedSince is the time of the first pass that did not see the member respond, possibly because the pass's view
	// was incomplete.
	missedSince time.Time
}

func (r *raft) clone() *raft {
	c := *r
	c.members, c.removed, c.up, c.alarms = slices.Clone(r.members), slices.Clone(r.removed), slices.Clone(r.up),
		slices.Clone(r.alarms)
	return &c
}

// serves reports whether the cluster has a leader.
func (r *raft) serves() bool { return r != nil && r.leader != 0 }

func (r *raft) isUp(id decide.ID) bool { return slices.Contains(r.up, id) }

func (r *raft) voters() (voters []member) {
	for _, m := range r.members {
		if !m.learner {
			voters = append(voters, m)
		}
	}
	return voters
}

func (r *raft) find(is func(member) bool) *member {
	if i := slices.IndexFunc(r.members, is); i >= 0 {
		return &r.members[i]
	}
	return nil
}

func (r *raft) byID(id decide.ID) *member {
	return r.find(func(m member) bool { return m.id == id })
}

func (r *raft) byOrdinal(n int) *member {
	return r.find(func(m member) bool { return m.ordinal == n })
}

func (r *raft) disarm(alarm decide.Alarm) {
	r.alarms = slices.DeleteFunc(r.alarms, func(a decide.Alarm) bool { return a == alarm })
}

// runEtcd lets the running members find each other, elect a leader and publish their attributes.
func (w *World) runEtcd() {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		w.gather(id, r)
		w.elect(r)
		if r.serves() && w.isLost(id) {
			w.violate("cluster %s has quorum, although a new cluster was created from it", id)
		}
		for i := range r.members {
			m := &r.members[i]
			if !r.isUp(m.id) {
				m.inSync = false
				if m.downSince.IsZero() {
					m.downSince = w.now
				}
				continue
			}
			m.ran, m.downSince = true, time.Time{}
			if r.serves() {
				w.sayName(m)
			}
		}
	}
}

// sayName publishes a member's name. Some learners accept clients only two ticks later. The ID of a learner determines
// the delay, so that random choices are not affected.
func (w *World) sayName(m *member) {
	if late := m.learner && m.id&4 != 0; !m.started && late && !w.hurried {
		m.opens = w.now.Add(2 * TickLength)
	}
	m.started, m.named = true, true
}

// isOpen reports whether a member accepts clients once it runs.
func (w *World) isOpen(r *raft, id decide.ID) bool {
	if r == nil {
		return true
	}
	m := r.byID(id)
	return m == nil || !w.now.Before(m.opens)
}

// gather determines the running members. A member that is no longer listed exits.
func (w *World) gather(id decide.ID, r *raft) {
	r.up = nil
	for _, n := range w.ordinals() {
		v, p := w.volumes[n], w.pods[n]
		if v.data.cluster != id || !p.up || v.hung {
			continue
		}
		if slices.Contains(r.removed, v.data.member) || w.meetsForced(id) {
			w.pods[n] = p.crashed(permanentlyRemoved)
			continue
		}
		if !w.apart[n] || len(r.members) == 1 {
			r.up = append(r.up, v.data.member)
		}
	}
}

// elect keeps the leader while the leader is up. Otherwise, it elects the running voter with the longest log. Replicas
// do not vote without the peer Service, because its DNS names connect them.
func (w *World) elect(r *raft) {
	var candidates []member
	alone := len(r.members) > 1 && !w.exists(w.peerService())
	for _, m := range r.voters() {
		if r.isUp(m.id) && (!alone || isGuest(m.ordinal)) {
			candidates = append(candidates, m)
		}
	}
	leads := func(m member) bool { return m.id == r.leader }
	switch {
	case len(candidates) < decide.Quorum(len(r.voters())):
		r.leader = 0
	case !slices.ContainsFunc(candidates, leads):
		longest := candidates[0]
		for _, m := range candidates {
			if w.indexOf(m) > w.indexOf(longest) {
				longest = m
			}
		}
		r.leader = longest.id
		if has := w.indexOf(longest); has < r.acknowledged && !r.excused {
			w.violate("%s is the leader with %d entries, but %d were acknowledged", w.replicaName(longest.ordinal), has,
				r.acknowledged)
		}
	}
	r.formed = r.formed || r.leader != 0
}

// writesPerTick is the number of entries that clients add to the log per tick.
const writesPerTick = 500

// indexOf returns the length of a member's log.
func (w *World) indexOf(m member) uint64 {
	if d := w.volumes[m.ordinal].data; d.member == m.id && !m.forced {
		return d.index
	}
	return 0
}

func (w *World) lastIndex(r *raft) uint64 {
	if m := r.byID(r.leader); m != nil {
		return w.indexOf(*m)
	}
	return 0
}

// extend extends the log of a member to index.
func (w *World) extend(m member, index uint64) {
	if v := w.volumes[m.ordinal]; v.data.member == m.id && !m.forced {
		v.data.index = max(v.data.index, index)
		w.volumes[m.ordinal] = v
	}
}

// replicate lets clients write, and lets members follow the leader. Until a member is in sync, it gets half of its
// missing entries with each tick. Entries are acknowledged once a majority of the voters has them. While an alarm is
// active, clients cannot write.
func (w *World) replicate(r *raft) {
	if !r.serves() {
		return
	}
	r.open = r.open || w.exists(w.clientService()) && w.objects[w.clientService()].leads
	if len(r.alarms) == 0 && r.open {
		w.extend(*r.byID(r.leader), w.lastIndex(r)+writesPerTick)
	}
	last := w.lastIndex(r)
	var logs []uint64
	for i := range r.members {
		m := &r.members[i]
		follows := r.isUp(m.id) && !w.slow[m.ordinal]
		switch has := w.indexOf(*m); {
		case follows && m.inSync:
			w.extend(*m, last)
		case follows:
			w.extend(*m, has+(last-min(has, last))/2)
			m.inSync = w.delay(2) == 0
		}
		if !m.learner {
			logs = append(logs, w.indexOf(*m))
		}
	}
	w.settleLogs(r)
	slices.Sort(logs)
	r.acknowledged = max(r.acknowledged, logs[len(logs)-decide.Quorum(len(logs))])
}

// hash derives an ID from a token and a number, as etcd derives IDs from its initial cluster.
func hash(token string, n int) decide.ID {
	h := fnv.New32a()
	h.Write([]byte(token))
	h.Write([]byte{byte(n), byte(n >> 8)})
	return decide.ID(h.Sum32()) | 1
}
