package simulate

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

const permanentlyRemoved = "the member has been permanently removed from the cluster"

// startEtcd starts etcd on the volume of an ordinal with the configuration file from the record. It returns etcd's last
// message if etcd does not start.
func (w *World) startEtcd(n int, p pod) string {
	v := w.volumes[n]
	file, found := w.record.Member(n)
	var words string
	switch {
	case w.Crashing != "" && p.hash == w.Crashing:
		return "flag provided but not defined"
	case !found:
		return "open /etc/etcd/members/" + w.replicaName(n) + ".yaml: no such file or directory"
	case v.data.member != 0:
		return w.startOnData(n, v.data, p)
	case file.Mode == decide.Founding:
		v.data, words = w.startFounding(n)
	case file.Mode == decide.Joining:
		v.data, words = w.startJoining(n, p)
	default:
		words = `couldn't find local name "` + w.replicaName(n) + `" in the initial cluster configuration`
	}
	if words == "" && v.givenUp && !w.addedByHand(v.data) {
		w.violate("%s starts on a volume that is being deleted", w.replicaName(n))
	}
	w.volumes[n] = v
	return words
}

// addedByHand reports whether the member with the given data was added manually or is not listed.
func (w *World) addedByHand(d data) bool {
	m := w.rafts[d.cluster].byID(d.member)
	return m == nil || m.byHand
}

func (w *World) startOnData(n int, d data, p pod) string {
	switch {
	case d.corrupt:
		return "panic: freelist: page 1437 already freed"
	case slices.Contains(w.rafts[d.cluster].removed, d.member):
		return permanentlyRemoved
	case w.findsOthers(d):
		return "discovery failed: " + d.member.String() + " " + differing
	}
	return w.refusesVersion(n, d, p)
}

// startFounding starts an initial member on an empty volume, with all initial members in its configuration file. The
// IDs are derived from the file. The member asks running members whether it has been up before. Before a member is
// sealed, only this prevents it from starting twice.
func (w *World) startFounding(n int) (data, string) {
	founders := w.founders()
	d := data{cluster: w.foundingID(), member: hash(w.record.Token, 1000+n)}
	for id, other := range w.rafts {
		if w.announced(id) != d.cluster && other.formed && w.hasData(id) && !other.old {
			w.violate("%s bootstraps cluster %s, although cluster %s has formed", w.replicaName(n), d.cluster, id)
		}
	}
	r := w.rafts[d.cluster]
	if r == nil {
		r = &raft{}
		for _, n := range founders {
			r.members = append(r.members, member{id: hash(w.record.Token, 1000+n), ordinal: n, named: true})
		}
		w.rafts[d.cluster] = r
	}
	if !w.hasData(d.cluster) {
		r.version, r.downgrade = 0, 0 // no data contains them any more
	}
	switch m := r.byID(d.member); {
	case m != nil && m.started && w.peersRun(r, *m):
		return data{}, "member " + w.replicaName(n) + " has already been bootstrapped"
	case slices.Contains(r.removed, d.member): // the other members report that it was removed
	case m == nil || m.ran && !m.heldBack && !w.putBack:
		w.violate("%s starts as a voter again without its previous votes", w.replicaName(n))
	case r.open && !w.putBack:
		w.violate("%s bootstraps cluster %s, although its client Service is open", w.replicaName(n), d.cluster)
	case r.open:
		r.excused = true
	}
	return d, ""
}

// foundingID returns the ID of the cluster that the recorded members bootstrap. The ID is derived from their
// configuration files.
func (w *World) foundingID() decide.ID {
	if w.record.Token == w.founds.token && w.founds.id != 0 {
		return w.founds.id
	}
	return hash(w.record.Token, len(w.founders()))
}

// peersRun reports whether a starting member reaches a running member. Even without a leader, a running member can
// report the members that have published their client URLs.
func (w *World) peersRun(r *raft, starting member) bool {
	return w.exists(w.peerService()) && !w.apart[starting.ordinal] &&
		slices.ContainsFunc(r.members, func(m member) bool { return m.id != starting.id && r.isUp(m.id) })
}

// founders returns the ordinals of the initial members in a bootstrap configuration file.
func (w *World) founders() []int {
	var ordinals []int
	for _, m := range w.record.Members {
		if m.Mode != decide.Joining {
			ordinals = append(ordinals, m.Ordinal)
		}
	}
	return ordinals
}

func (w *World) hasData(cluster decide.ID) bool {
	for _, v := range w.volumes {
		if v.data.cluster == cluster {
			return true
		}
	}
	return false
}

// startJoining starts a member that a cluster with a leader has added. A member that lost its log after it had started
// exits as soon as the leader sends more entries.
func (w *World) startJoining(n int, p pod) (data, string) {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		m := r.byOrdinal(n)
		switch {
		case m == nil || !r.serves():
			continue
		case !slices.Equal(r.ids(), w.initial):
			return data{}, "error validating peerURLs: member count is unequal"
		case m.ran:
			return data{}, "tocommit(1436) is out of range [lastIndex(0)]. " +
				"Was the raft log corrupted, truncated, or lost?"
		case r.downgrade != 0: // regardless of the member's version
			return data{}, "incompatible with current running cluster"
		case minorOf(p.version) < r.version:
			return data{}, "incompatible with current running cluster"
		}
		return data{cluster: id, member: m.id, variant: w.variantOf(*r.byID(r.leader))}, ""
	}
	return data{}, "cannot fetch cluster info from peer urls: " +
		"could not retrieve cluster information from the given URLs"
}

// ids returns the IDs of all listed members.
func (r *raft) ids() []decide.ID {
	var ids []decide.ID
	for _, m := range r.members {
		ids = append(ids, m.id)
	}
	return ids
}

// listedIDs returns the IDs that the configuration file of a joining member would list now, and whether etcd can be
// reached.
func (w *World) listedIDs() ([]decide.ID, bool) {
	r, _ := w.reachable()
	if r == nil {
		return nil, false
	}
	return r.ids(), true
}
