package simulate

import (
	"hash/fnv"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// raft is one cluster of etcd: its member list as a quorum of it has committed it.
type raft struct {
	members []member
	// removed members never come back.
	removed []decide.ID
	// up are the members that run and reach each other.
	up     []decide.ID
	leader decide.ID
	// formed: it has once had a leader, so it may hold data.
	formed bool
}

type member struct {
	id      decide.ID
	ordinal int
	// named: its name is known. One that was added has none before it starts.
	named bool
	// ran: it has been up, so it may have voted.
	ran     bool
	started bool
	learner bool
	inSync  bool
	// heldBack: its volume was lost before it could be sealed.
	heldBack bool
}

func (r *raft) clone() *raft {
	c := *r
	c.members, c.removed, c.up = slices.Clone(r.members), slices.Clone(r.removed), slices.Clone(r.up)
	return &c
}

// serves reports whether the cluster has a leader.
func (r *raft) serves() bool { return r != nil && r.leader != 0 }

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

// startEtcd starts etcd on the volume of an ordinal with the file that the record gives it. It returns etcd's last
// words if it does not start.
func (w *World) startEtcd(n int) string {
	v := w.volumes[n]
	file, found := w.record.Member(n)
	switch {
	case !found:
		return "open /etc/etcd/members/" + w.replicaName(n) + ".yaml: no such file or directory"
	case v.data.member != 0:
		return w.startOnData(v.data)
	case file.Mode == decide.Founding:
		v.data = w.startFounding(n)
	case file.Mode == decide.Joining:
		joined, words := w.startJoining(n)
		if words != "" {
			return words
		}
		v.data = joined
	default:
		return `couldn't find local name "` + w.replicaName(n) + `" in the initial cluster configuration`
	}
	w.volumes[n] = v
	return ""
}

func (w *World) startOnData(d data) string {
	if slices.Contains(w.rafts[d.cluster].removed, d.member) {
		return "the member has been permanently removed from the cluster"
	}
	return ""
}

// startFounding starts a member on an empty volume with all founding members in its file. The IDs follow from the file.
func (w *World) startFounding(n int) data {
	d := data{cluster: hash(w.record.Token, len(w.record.Members)), member: hash(w.record.Token, 1000+n)}
	for id, other := range w.rafts {
		if id != d.cluster && other.formed && w.hasData(id) {
			w.violate("%s founds cluster %s, and %s has formed", w.replicaName(n), d.cluster, id)
		}
	}
	r := w.rafts[d.cluster]
	if r == nil {
		r = &raft{}
		for _, m := range w.record.Members {
			r.members = append(r.members, member{id: hash(w.record.Token, 1000+m.Ordinal), ordinal: m.Ordinal, named: true})
		}
		w.rafts[d.cluster] = r
	}
	if m := r.byID(d.member); m == nil || m.ran && !m.heldBack && !w.putBack {
		w.violate("%s starts as a voter again, and has forgotten its votes", w.replicaName(n))
	}
	return d
}

func (w *World) hasData(cluster decide.ID) bool {
	for _, v := range w.volumes {
		if v.data.cluster == cluster {
			return true
		}
	}
	return false
}

// startJoining starts a member that a cluster with a leader has been told of.
func (w *World) startJoining(n int) (data, string) {
	for id, r := range w.rafts {
		if m := r.byOrdinal(n); m != nil && !m.ran && r.serves() {
			return data{cluster: id, member: m.id}, ""
		}
	}
	return data{}, "error validating peerURLs: member count is unequal"
}

// runEtcd lets the members that are up find each other, elect and publish what they are.
func (w *World) runEtcd() {
	for id, r := range w.rafts {
		w.gather(id, r)
		r.elect(w.exists(w.peerService()))
		for i := range r.members {
			m := &r.members[i]
			if !slices.Contains(r.up, m.id) {
				continue
			}
			m.ran = true
			if r.serves() {
				m.inSync = m.started // it takes a tick from the start
				m.started, m.named = true, true
			}
		}
	}
}

// gather finds out which members run.
func (w *World) gather(id decide.ID, r *raft) {
	r.up = nil
	for _, n := range w.ordinals() {
		d := w.volumes[n].data
		p := w.pods[n]
		if d.cluster != id || !p.up {
			continue
		}
		if slices.Contains(r.removed, d.member) {
			p.up, p.failing, p.message = false, true, "the member has been permanently removed from the cluster"
			w.pods[n] = p
			continue
		}
		r.up = append(r.up, d.member)
	}
}

// elect keeps the leader as long as it is up, and elects another voter if it is not. Members find each other by the
// names that the Service gives them.
func (r *raft) elect(namesResolve bool) {
	var candidates []decide.ID
	for _, m := range r.voters() {
		if slices.Contains(r.up, m.id) {
			candidates = append(candidates, m.id)
		}
	}
	switch {
	case len(candidates) < decide.Quorum(len(r.voters())), len(r.members) > 1 && !namesResolve:
		r.leader = 0
	case !slices.Contains(candidates, r.leader):
		r.leader = candidates[0]
	}
	r.formed = r.formed || r.leader != 0
}

// hash makes an ID out of a token and a number, as etcd makes them out of its initial cluster.
func hash(token string, n int) decide.ID {
	h := fnv.New32a()
	h.Write([]byte(token))
	h.Write([]byte{byte(n), byte(n >> 8)})
	return decide.ID(h.Sum32()) | 1
}
