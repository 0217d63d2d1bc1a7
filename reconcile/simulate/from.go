package simulate

import (
	"cmp"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// From returns a world in the given state, so that passes can be simulated from there. Everything that the state does
// not show is assumed to be healthy: for example, nodes are up and failing pods may start. If pods are ready but etcd
// does not respond, etcd is assumed to be unreachable.
func From(s decide.State, seed uint64) *World {
	w := New(s.Name, s.Declared, seed)
	w.namespace, w.now = s.Namespace, s.Now
	w.serial = 1 << 20 // new UIDs differ from observed UIDs
	w.LockHolder = s.LockHolder
	w.status.clusterID, w.status.version, w.status.waited = s.ReportedClusterID, s.ReportedVersion, s.Waited
	w.status.repeated, w.status.void = s.Repeated, s.ReportedVoidRecovery
	w.windowClosed = s.WindowClosed
	w.status.request, w.status.comparison = s.DefragmentationRequest, s.Comparison
	w.status.defragmented = map[decide.ID]decide.LastDefragmentation{}
	for _, m := range s.Membership.Members {
		if !m.Defragmented.At.IsZero() {
			w.status.defragmented[m.ID] = m.Defragmented
		}
	}
	w.record = s.Record
	w.founds.token, w.founds.id = s.Record.Token, s.FoundingID
	w.cut = !s.Membership.Known && anyReady(s)
	w.fromObjects(s.Objects)
	if s.Objects.RunsVersion+s.Objects.RunsHash != "" {
		w.set = statefulSet{s.Objects.RunsReplicas, s.Objects.RunsVersion, s.Objects.RunsHash,
			cmp.Or(s.Objects.RunsToken, s.Record.Token), quotaOf(s, s.Objects.RunsVersion, s.Objects.RunsHash)}
	}
	w.fromMembership(s)
	for _, r := range s.Replicas {
		w.fromReplica(s, r)
	}
	w.fromCA(s)
	w.fromBackups(s)
	w.fromRestore(s)
	w.fromRecovery(s)
	w.runEtcd()
	for _, r := range w.rafts {
		w.initial = r.ids()
		w.settleVersion(r)
	}
	w.judgePods()
	w.fromServing(s)
	return w
}

// fromServing makes the client Service and the PodDisruptionBudget match the members. A client Service that is reported
// to differ stays closed.
func (w *World) fromServing(s decide.State) {
	service, budget := w.objects[w.clientService()], w.objects[w.budget()]
	service.leads = !s.Record.Closed() && !w.objects[w.clientService()].changed
	budget.minAvailable = w.minAvailable(decide.RequiredRecord(s, ""))
	for name, o := range map[string]object{w.clientService(): service, w.budget(): budget} {
		if w.exists(name) {
			w.objects[name] = o
		}
	}
}

func anyReady(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod == decide.PodReady {
			return true
		}
	}
	return false
}

// fromObjects assumes that every object exists unless it is reported missing.
func (w *World) fromObjects(o decide.Objects) {
	for _, name := range w.Objects() {
		w.objects[name] = object{uid: w.next("u")}
		w.adopt(name)
	}
	w.applied = w.Declared
	for _, entry := range o.Drift {
		name, what, _ := strings.Cut(entry, ": ")
		if what == "missing" {
			delete(w.objects, name)
			continue
		}
		w.Change(name)
	}
	w.fromRewritten(o.Rewritten)
	for _, entry := range o.Foreign { // kind, name and reason
		for _, name := range w.Objects() {
			if strings.HasPrefix(entry, name+" ") {
				w.Occupy(name)
			}
		}
	}
}

// fromMembership builds the members from etcd's member list. If there is no list, it uses the record. If there is no
// record either, it assumes a member with data for each volume.
func (w *World) fromMembership(s decide.State) {
	r := &raft{downgrade: minorOf(s.Membership.Downgrade), alarms: s.Membership.StaleAlarms}
	for _, m := range s.Membership.Members {
		w.fromMember(s, r, m)
	}
	unlisted := len(s.Membership.Members) == 0
	if unlisted {
		w.fromGuests(s, r)
	}
	for _, m := range s.Record.Members {
		id := m.ID
		if m.Ordinal == decide.SeedOrdinal {
			id = cmp.Or(id, s.Record.Restored.MemberID)
		}
		id = cmp.Or(id, hash(s.Record.Token, 1000+m.Ordinal))
		started := m.Mode == decide.Sealed
		if unlisted && m.Mode != decide.Founding && m.Mode != decide.Restoring {
			r.members = append(r.members, member{id: id, ordinal: m.Ordinal, named: started, ran: started,
				started: started, learner: !started})
		}
	}
	for _, v := range s.Replicas {
		if lost := len(s.Record.Members) == 0 && unlisted; lost && v.VolumeUID != "" {
			id := hash(v.VolumeToken, 1000+v.Ordinal)
			r.members = append(r.members, member{id: id, ordinal: v.Ordinal, named: true, ran: true, started: true})
		}
	}
	if len(r.members) > 0 {
		r.formed = true
		w.rafts[idOf(s)] = r
	}
}

// fromGuests adds the members of the cluster to adopt, or the recorded guests, whose state is unknown.
func (w *World) fromGuests(s decide.State, r *raft) {
	guests := s.Source.Members
	for _, id := range s.Record.Guests {
		guests = append(slices.Clip(guests), decide.Member{ID: id, Name: id.String(), Started: true, Answers: true,
			Version: s.Declared.Version})
	}
	for _, m := range guests {
		w.fromGuest(s, r, m, member{id: m.ID, named: m.Name != "", ran: true, started: m.Started, learner: m.Learner,
			inSync: m.Answers})
	}
}

// fromGuest adds a guest with an invented pod and volume.
func (w *World) fromGuest(s decide.State, r *raft, m decide.Member, joined member) {
	joined.ordinal = firstGuest - len(w.guestNames)
	w.guestNames[joined.ordinal] = m.Name
	if m.Leader {
		r.leader = m.ID
	}
	r.open = true // its clients do not use this cluster's Service
	w.addGuest(r, joined, idOf(s), pod{version: m.Version, up: m.Answers},
		data{index: m.Applied, storage: minorOf(m.StorageVersion), variant: int(m.Hash.Sum)})
}

func (w *World) fromMember(s decide.State, r *raft, m decide.Member) {
	ordinal, ours := s.OrdinalOf(m)
	if !ours {
		ordinal = -1 - len(r.members)
	}
	joined := member{
		id: m.ID, ordinal: ordinal, named: m.Name != "", ran: m.Started, started: m.Started, learner: m.Learner,
		inSync: m.Answers,
	}
	if joins := m.Learner && m.Started && !m.Answers; joins && s.Replica(ordinal).Pod == decide.PodStarting {
		joined.opens = s.Now.Add(TickLength)
	}
	if s.Record.Hosts(m.ID) {
		w.fromGuest(s, r, m, joined)
	} else {
		r.members = append(r.members, joined)
	}
	if m.Leader {
		r.leader = m.ID
	}
	for _, kind := range m.Alarms {
		r.alarms = append(r.alarms, decide.Alarm{ID: m.ID, Kind: kind})
	}
	if !m.SilentSince.IsZero() {
		w.status.silent[m.ID] = m.SilentSince
	}
}

// idOf returns the cluster ID, or an invented ID if the cluster ID is unknown. A cluster that has just been created
// from a backup is not recorded yet: its ID is the restored ID, or the ID that its first member reports.
func idOf(s decide.State) decide.ID {
	reported := s.Replica(decide.SeedOrdinal).ClusterID
	return cmp.Or(s.Membership.ClusterID, s.Source.ClusterID, s.Record.ClusterID, s.ReportedClusterID,
		s.Record.Restored.ClusterID, reported, hash(s.Name, 0))
}

func (w *World) fromReplica(s decide.State, r decide.Replica) {
	if r.VolumeUID != "" {
		w.volumes[r.Ordinal] = volume{
			uid: r.VolumeUID, token: r.VolumeToken, terminating: r.VolumeTerminating, stranded: r.Stranded,
			strandedAt: r.StrandedSince, lostCluster: r.LostCluster, lastUse: r.LastUse, data: w.fromData(s, r),
		}
		w.set.token = cmp.Or(w.set.token, r.VolumeToken)
	}
	if claimGone(s, r) {
		w.volumes[r.Ordinal] = volume{uid: w.next("v"), token: s.Record.Token, terminating: true, detached: true,
			data: w.fromData(s, r)}
	}
	d := w.volumes[r.Ordinal].data
	runs := r.Pod == decide.PodReady || r.ClusterID != 0 || !w.isOpen(w.rafts[d.cluster], d.member)
	if s.Record.Unproven() && !s.Membership.Known && r.Pod == decide.PodStarting {
		runs = false // the restored member responds, but does not lead yet
	}
	if hasData := d.member != 0; r.Pod != decide.PodAbsent {
		w.pods[r.Ordinal] = pod{
			uid: r.PodUID, version: r.PodVersion, hash: r.PodSpecHash, message: r.PodMessage, since: r.PodSince,
			crashes: r.PodCrashes, unbound: r.PodUnbound, quota: quotaOf(s, r.PodVersion, r.PodSpecHash),
			started: r.PodStarted, going: r.PodGoing,
			up: hasData && runs, terminating: r.Pod == decide.PodTerminating, failing: r.Pod == decide.PodFailing,
		}
	}
}

// claimGone reports whether a pod still uses a volume whose claim is gone.
func claimGone(s decide.State, r decide.Replica) bool {
	recorded, _ := s.Record.Member(r.Ordinal)
	sealed := recorded.VolumeUID != "" || recorded.ID != 0
	runs := r.Pod == decide.PodReady || r.ClusterID != 0 && r.Pod != decide.PodTerminating
	return r.VolumeUID == "" && (r.Pod == decide.PodFailing || sealed && runs)
}

// fromData returns the data that the volume of a replica seems to hold: the data of the member in its slot, or of a
// removed member.
func (w *World) fromData(s decide.State, r decide.Replica) data {
	id := cmp.Or(r.ClusterID, idOf(s))
	cluster := w.rafts[id]
	recorded, _ := s.Record.Member(r.Ordinal)
	runs := claimGone(s, r) && r.Pod != decide.PodFailing
	lost := recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID && !runs
	if cluster == nil || lost {
		return data{}
	}
	for _, gone := range s.Record.Removed {
		if gone.VolumeUID == r.VolumeUID {
			d := data{cluster: id, member: hash(r.VolumeUID, r.Ordinal)}
			cluster.removed = append(cluster.removed, d.member)
			return d
		}
	}
	m := cluster.byOrdinal(r.Ordinal)
	if m == nil || !m.ran {
		return data{}
	}
	d := data{cluster: id, member: m.id, index: nothingKnown, version: minorOf(s.ReportedVersion),
		wrote: minorOf(s.Record.LogVersion)}
	if s.Record.Token == "" {
		d.wrote = d.version // the log version is unknown, so the log is assumed to be compatible
	}
	if cluster.downgrade != 0 {
		d.version = min(d.version, cluster.downgrade) // otherwise etcd would not start, without an observable reason
	}
	for _, seen := range s.Membership.Members {
		if seen.ID == m.id && seen.Answers {
			d.index, d.storage, d.variant = seen.Applied, minorOf(seen.StorageVersion), int(seen.Hash.Sum)
			if !seen.Hash.Known() && !s.InDoubt() { // its hash was requested, but did not arrive
				d.variant = anyVariant(s.Membership.Members)
			}
			d.size, d.inUse = seen.DBSize, seen.DBSizeInUse
		}
	}
	for _, seen := range s.Membership.Members {
		if m.learner && seen.Leader { // a learner reports no hash, but has the leader's data
			d.variant = int(seen.Hash.Sum)
		}
	}
	return d
}

// anyVariant returns the data of members that are assumed to hold the same data.
func anyVariant(members []decide.Member) int {
	for _, m := range members {
		if m.Hash.Known() {
			return int(m.Hash.Sum)
		}
	}
	return 0
}

// nothingKnown is the assumed length of an unknown log.
const nothingKnown = 1

// quotaOf returns the quota of pods with the given version and SpecHash, or zero if it is unknown.
func quotaOf(s decide.State, version, specHash string) int64 {
	if version == s.Declared.Version && specHash == s.Declared.SpecHash {
		return s.Declared.Quota
	}
	for _, r := range s.Replicas {
		if r.PodVersion == version && r.PodSpecHash == specHash {
			return r.PodQuota
		}
	}
	return 0
}
