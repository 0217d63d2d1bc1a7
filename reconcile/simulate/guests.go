package simulate

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// firstGuest is the ordinal of the first guest. The following guests have lower ordinals. A guest has a pod and a
// volume in the world, but passes observe neither.
const firstGuest = -10

func isGuest(n int) bool { return n <= firstGuest }

// source is the ID of the cluster that Adopt creates.
const source decide.ID = 0xad0

// Adopt creates a running cluster of n members that another tool manages, and declares its adoption. The members are
// named old-0, old-1, and so on. With namesakes, they have the names of replicas.
func (w *World) Adopt(n int, namesakes bool) {
	name := "old"
	if namesakes {
		name = w.name
	}
	r := &raft{formed: true, open: true}
	for i := range n {
		w.guestNames[firstGuest-i] = fmt.Sprintf("%s-%d", name, i)
		w.addGuest(r, member{id: hash("guest", i), ordinal: firstGuest - i, named: true, ran: true, started: true,
			inSync: true}, source, pod{version: w.Declared.Version, up: true}, data{index: 1000})
	}
	w.rafts[source] = r
	w.Declared.Adoption = decide.AdoptionOrder{ClusterID: source,
		PeerURL: fmt.Sprintf("https://%[1]s-0.%[1]s.b.svc:2380", w.name)}
	w.settleVersion(r)
	w.runEtcd()
	w.judgePods()
}

// addGuest adds a guest with its pod and volume.
func (w *World) addGuest(r *raft, m member, cluster decide.ID, p pod, d data) {
	r.members = append(r.members, m)
	p.uid = w.next("p")
	d.cluster, d.member = cluster, m.id
	w.pods[m.ordinal] = p
	w.volumes[m.ordinal] = volume{uid: w.next("v"), data: d}
}

// GuestDown stops a guest, or starts it again. Guests are counted from 0.
func (w *World) GuestDown(i int, down bool) {
	n := firstGuest - i
	if _, there := w.pods[n]; there {
		w.NodeDown(n, down)
	}
}

// RemoveGuest removes a guest from etcd's member list, as another tool does.
func (w *World) RemoveGuest(i int) { w.RemoveMember(firstGuest - i) }

// RejoinGuest adds a removed guest to etcd's list again, as a voter with a new ID. The entry points of some images do
// the same.
func (w *World) RejoinGuest(i int) {
	n := firstGuest - i
	before, ran := w.pods[n]
	listed := false
	for _, r := range w.rafts {
		listed = listed || r.byOrdinal(n) != nil
	}
	if !ran || listed {
		return
	}
	w.AddMember(n)
	for id, r := range w.rafts {
		if m := r.byOrdinal(n); m != nil {
			m.named, m.started = true, true
			w.volumes[n] = volume{uid: w.next("v"), data: data{cluster: id, member: m.id}}
			w.pods[n] = pod{uid: w.next("p"), version: before.version, up: true}
		}
	}
	w.runEtcd()
}

// Hosts reports whether the i-th guest is recorded and listed.
func (w *World) Hosts(i int) bool {
	for _, r := range w.rafts {
		if m := r.byOrdinal(firstGuest - i); m != nil && w.record.Hosts(m.id) {
			return true
		}
	}
	return false
}

// Release declares that a guest may be removed.
func (w *World) Release(i int) {
	if id := hash("guest", i); !slices.Contains(w.Declared.Adoption.Release, id) {
		w.Declared.Adoption.Release = append(slices.Clone(w.Declared.Adoption.Release), id)
	}
}

// releases reports whether git releases the member. It returns false if the adoption is abandoned.
func (w *World) releases(id decide.ID) bool {
	return slices.Contains(w.Declared.Adoption.Release, id) && !w.Declared.Adoption.Abandon
}

// wanted returns the number of replicas that should be members.
func (w *World) wanted() int {
	if w.Declared.Adoption.Abandon && len(w.record.Guests) > 0 {
		return 0
	}
	return w.Declared.Replicas
}

// leaves reports whether the volume belongs to a guest that has been removed or may be removed at any time.
func (w *World) leaves(n int) bool {
	d := w.volumes[n].data
	return isGuest(n) && (w.releases(d.member) || w.rafts[d.cluster].byID(d.member) == nil)
}

func (w *World) memberName(n int) string {
	if isGuest(n) {
		return w.guestNames[n]
	}
	return w.replicaName(n)
}

// asksGuests reports whether passes ask the endpoints of an adopted cluster: while guests are recorded, or while the
// record is lost.
func (w *World) asksGuests() bool {
	return w.Declared.Adoption.ClusterID != 0 && (!w.exists(w.configMap()) && w.anyOwn() ||
		len(w.record.Guests) > 0 || w.exists(w.configMap()) && w.record.Adopted == 0)
}

// anyOwn reports whether a replica has a pod or a volume.
func (w *World) anyOwn() bool {
	return slices.ContainsFunc(w.ordinals(), func(n int) bool { return n >= 0 })
}

// anyPod reports whether a replica has a pod.
func (w *World) anyPod() bool {
	for n := range w.pods {
		if n >= 0 {
			return true
		}
	}
	return false
}

// seenSource returns the view of the cluster to adopt while nothing of this cluster exists.
func (w *World) seenSource(s decide.State) decide.Membership {
	if !s.BeginsAdoption() {
		return decide.Membership{}
	}
	open := *w
	open.asksSource = true
	for _, id := range w.clusters() {
		r := w.rafts[id]
		if len(r.members) == 0 || !isGuest(r.members[0].ordinal) {
			continue
		}
		if !r.serves() {
			return decide.Membership{Why: "no leader", Members: open.list(r)}
		}
		return open.confirmed(open.linearizable(id, r), r)
	}
	return decide.Membership{}
}

// beginAdoption returns the writes that record the guests and create the objects, unless the source has changed.
func (w *World) beginAdoption(s decide.State, a decide.Bootstrap) []write {
	if !s.BeginsAdoption() || !s.Source.Known || s.Source.ClusterID != a.Adopts {
		return nil
	}
	return w.applyAll(s, w.next("t"))
}

// judgeRelease records a violation if a guest must not be removed now.
func (w *World) judgeRelease(r *raft, m member) {
	if !isGuest(m.ordinal) {
		return
	}
	if !w.releases(m.id) {
		w.violate("guest %s is removed, but git does not release it", m.id)
	}
	own, rest := 0, 0
	for _, other := range r.voters() {
		if other.id != m.id {
			rest++
		}
		if !isGuest(other.ordinal) && r.isUp(other.id) {
			own++
		}
	}
	if r.isUp(m.id) && !w.mute[m.ordinal] && own < decide.Quorum(rest) {
		w.violate("guest %s is removed, but the replicas do not have quorum without the guests", m.id)
	}
}
