package simulate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// Observe returns the state that a pass observes.
func (w *World) Observe() decide.State { return w.observe(w.membership()) }

// observe is like Observe, with the given membership.
func (w *World) observe(says decide.Membership) decide.State {
	s := decide.State{
		Name:         w.name,
		Namespace:    w.namespace,
		Now:          w.now,
		Declared:     w.Declared,
		LockHolder:   w.LockHolder,
		Membership:   says,
		WindowClosed: w.windowClosed,
	}
	s.Declared.Digest = cmp.Or(w.Declared.Digest, digestOf(w.Declared))
	if w.exists(w.customResource()) {
		s.ReportedClusterID, s.ReportedVersion = w.reported(), w.status.version
		s.ReportedVoidRecovery = w.status.void
		s.Waited = slices.Clone(w.status.waited)
		s.Repeated = slices.Clone(w.status.repeated)
		s.DefragmentationRequest, s.Comparison = w.status.request, w.status.comparison
		s.Generation = w.backups.generation
	}
	s.Backups, s.Restore, s.Recovery = w.seenBackups(), w.seenRestore(), w.seenRecovery()
	if w.exists(w.configMap()) {
		s.Record = w.record
		s.Record.Members, s.Record.Removed = slices.Clone(w.record.Members), slices.Clone(w.record.Removed)
	}
	s.FoundingID = w.seenFounding(s.Record)
	for _, n := range w.ordinals() {
		if n < 0 {
			continue
		}
		if r := w.replica(n); r.VolumeUID != "" || r.Pod != decide.PodAbsent {
			s.Replicas = append(s.Replicas, r)
		}
	}
	s.Membership = confirmedByRecord(s)
	if w.exists(w.statefulSet()) {
		s.Objects.RunsReplicas, s.Objects.RunsToken = w.set.replicas, w.set.token
	}
	s.Source = w.seenSource(s)
	s.CA, s.Certificates = w.seenCA(s), w.seenCertificates()
	s.Objects = w.compare(s)
	return s
}

// digestOf returns a digest of a declaration.
func digestOf(d decide.Declared) string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%+v", d)
	return fmt.Sprintf("%08x", sum.Sum32())
}

// seenFounding returns the ID of the cluster that the members in a record bootstrap. It returns zero if they do not
// bootstrap a cluster.
func (w *World) seenFounding(r decide.Record) decide.ID {
	if len(r.Members) == 0 || slices.ContainsFunc(r.Members,
		func(m decide.RecordedMember) bool { return m.Mode != decide.Founding }) {
		return 0
	}
	if r.Token == w.founds.token {
		return w.founds.id
	}
	return w.foundingID()
}

// reported returns the cluster ID in the status, unless the record supersedes it.
func (w *World) reported() decide.ID {
	if w.exists(w.configMap()) && w.record.Supersedes(w.status.clusterID) {
		return 0
	}
	return w.status.clusterID
}

func (w *World) replica(n int) decide.Replica {
	v := w.volumes[n]
	r := decide.Replica{
		Ordinal: n, Pod: decide.PodAbsent, Stranded: v.stranded,
		VolumeUID: v.uid, VolumeToken: v.token, VolumeTerminating: v.terminating, LostCluster: v.lostCluster,
		LastUse: v.lastUse,
	}
	if r.Stranded != "" && w.exists(w.customResource()) {
		r.StrandedSince = w.status.stranded[n]
	}
	if v.detached || (v.unlisted || v.disowned) && !w.lookedUp(n) {
		r = decide.Replica{Ordinal: n, Pod: decide.PodAbsent}
	}
	p, there := w.pods[n]
	if _, recorded := w.record.Member(n); !there || p.unlisted && !recorded {
		return r
	}
	r.Pod, r.PodUID, r.PodVersion, r.PodSpecHash, r.PodMessage, r.PodCrashes = p.phase(), p.uid, p.version, p.hash,
		p.message, p.crashes
	if p.version != w.Declared.Version || p.hash != w.Declared.SpecHash {
		r.PodQuota = p.quota
	}
	r.PodStoppedByCheck = p.stoppedByCheck()
	r.NoData = strings.Contains(p.message, "couldn't find local name")
	r.NoPeers = strings.Contains(p.message, "cannot fetch cluster info from peer urls")
	r.PodUnbound = p.unbound && r.Pod == decide.PodPending
	if !p.ready {
		r.PodSince = p.since
	}
	if r.Pod == decide.PodStarting {
		r.PodStarted = p.started
	}
	if r.Pod == decide.PodTerminating {
		r.PodGoing = p.going
	}
	if p.up && !w.cut && !w.mute[n] && !v.hung && w.isOpen(w.rafts[v.data.cluster], v.data.member) {
		r.ClusterID = w.announced(v.data.cluster)
	}
	return r
}

// lookedUp reports whether passes look up the claim of an ordinal by name if it is not listed.
func (w *World) lookedUp(n int) bool { return n < max(w.record.Replicas(), w.Declared.Replicas) }

func (w *World) compare(s decide.State) decide.Objects {
	o := decide.Objects{Remaining: w.remaining()}
	if w.exists(w.statefulSet()) {
		o.RunsVersion, o.RunsHash, o.RunsReplicas, o.RunsToken = w.set.version, w.set.hash, w.set.replicas, w.set.token
	}
	for n, v := range w.volumes {
		if v.disowned {
			o.Foreign = append(o.Foreign,
				"PersistentVolumeClaim data-"+w.replicaName(n)+
					" exists but was not created by Quorate for this cluster")
		}
	}
	slices.Sort(o.Foreign)
	required := decide.RequiredRecord(s, "fresh")
	for _, name := range w.Objects() {
		what := w.differs(name, required)
		if field := w.seenRewritten(name); field != nil {
			o.Rewritten = append(o.Rewritten, *field)
		}
		switch {
		case w.objects[name].foreign:
			o.Foreign = append(o.Foreign, name+" exists but was not created by Quorate for this cluster")
			continue
		case what == "" || s.Distrusted() != "" && name != w.customResource():
			continue
		case name == w.customResource():
			o.DeclarationDiffers = true
		case name == w.ca() && what == "missing" && (w.anyPod() || o.RunsReplicas > 0):
			o.Irreplaceable = append(o.Irreplaceable, name+": missing")
		}
		o.Drift = append(o.Drift, name+": "+what)
	}
	return o
}

// reachable returns a cluster with a leader and a reachable member, and the key of the cluster. It returns nil if there
// is no such cluster.
func (w *World) reachable() (*raft, decide.ID) {
	for _, id := range w.clusters() {
		if r := w.rafts[id]; r.serves() && slices.ContainsFunc(r.members,
			func(m member) bool { return w.answers(r, m) }) {
			return r, id
		}
	}
	return nil, 0
}

func (w *World) answers(r *raft, m member) bool {
	if isGuest(m.ordinal) && !w.asksSource && !w.asksGuests() {
		return false
	}
	return r.serves() && r.isUp(m.id) && w.isOpen(r, m.id) && !w.cut && !w.mute[m.ordinal]
}

// membership returns the membership that etcd reports: the list of a cluster with a leader, or a single member's list.
func (w *World) membership() decide.Membership {
	if r, id := w.reachable(); r != nil {
		return w.lie(w.confirmed(w.linearizable(id, r), r), r)
	}
	if w.stuck.forbidden {
		return decide.Membership{Why: "forbidden", Forbidden: "cannot create resource pods/portforward"}
	}
	if w.cut {
		return decide.Membership{Why: "dial tcp: i/o timeout"}
	}
	for _, id := range slices.Backward(w.clusters()) {
		r := w.rafts[id]
		if slices.ContainsFunc(r.members, func(m member) bool {
			return r.isUp(m.id) && !w.mute[m.ordinal] && (!isGuest(m.ordinal) || w.asksGuests())
		}) {
			return decide.Membership{Why: "no leader", ClusterID: w.announced(id), Members: w.list(r)}
		}
	}
	return decide.Membership{Why: "no pod responds"}
}

// lie replaces the list if only a member that lies responds: it claims to be the leader and the only voter.
func (w *World) lie(m decide.Membership, r *raft) decide.Membership {
	if decide.Answering(m.Members) != 1 {
		return m
	}
	n := slices.IndexFunc(m.Members, func(m decide.Member) bool { return m.Answers })
	if !w.stuck.liar[r.members[n].ordinal] {
		return m
	}
	for i := range m.Members {
		m.Members[i].Leader, m.Members[i].Learner = i == n, i != n
	}
	m.Members[n].Disagrees = ""
	m.Known, m.Unconfirmed, m.Disputed, m.Why = true, false, false, ""
	return m
}

// confirmedByRecord makes a list unknown if too few of the recorded voters return it, as clusters/etcd does.
func confirmedByRecord(s decide.State) decide.Membership {
	m := s.Membership
	var ids []decide.ID
	for _, entry := range m.Members {
		ids = append(ids, entry.ID)
	}
	slices.Sort(ids)
	if !m.Known || slices.Equal(ids, s.ConfirmedMembers()) {
		return m
	}
	agreeing, counted := 0, map[int]bool{}
	alone := len(m.Voters()) == 1
	for _, entry := range m.Members {
		ordinal, ours := s.OrdinalOf(entry)
		if !ours {
			ordinal = -1
		}
		switch {
		case !entry.Answers:
		case entry.Learner:
			counted[ordinal] = true
		case entry.Disagrees == "" || alone:
			agreeing++
			counted[ordinal] = true
		}
	}
	others := 0
	for _, recorded := range s.RecordedVoters() {
		if !counted[recorded.Ordinal] {
			others++
		}
	}
	for _, id := range s.RecordedGuests() {
		if !slices.ContainsFunc(m.Members, func(m decide.Member) bool { return m.ID == id && m.Answers }) {
			others++
		}
	}
	if agreeing < decide.Quorum(agreeing+others) {
		m.Known, m.Unconfirmed, m.Unrecorded = false, true, true
		m.Why = fmt.Sprintf("%s returned the member list, but %s did not",
			decide.Count(agreeing, "voter"), decide.Count(others, "other recorded voter"))
	}
	return m
}

// confirmed makes a list unknown unless a majority of the voters in it respond and return it. The list of an only voter
// cannot differ from the lists of others.
func (w *World) confirmed(m decide.Membership, r *raft) decide.Membership {
	voters := r.voters()
	same, differ := 0, 0
	for _, voter := range voters {
		switch {
		case !w.answers(r, voter):
		case w.stuck.zombie[voter.ordinal] && len(voters) > 1:
			differ++
		default:
			same++
		}
	}
	if m.Known = same >= decide.Quorum(len(voters)); !m.Known {
		m.Unconfirmed, m.Disputed = true, differ > 0
		m.Why = fmt.Sprintf("%d of %d voters returned the member list", same, len(voters))
	}
	return m
}

func (w *World) linearizable(id decide.ID, r *raft) decide.Membership {
	m := decide.Membership{Known: true, ClusterID: w.announced(id), Members: w.list(r)}
	for _, alarm := range r.alarms {
		if r.byID(alarm.ID) == nil {
			m.StaleAlarms = append(m.StaleAlarms, alarm)
		}
	}
	says := func(m member) bool { return w.answers(r, m) && minorOf(w.pods[m.ordinal].version) >= saysStorage }
	if slices.ContainsFunc(r.members, says) {
		m.Downgrade = minorText(r.downgrade)
	}
	return m
}

func (w *World) list(r *raft) []decide.Member {
	var list []decide.Member
	for _, m := range r.members {
		entry := decide.Member{
			ID:      m.id,
			PeerURL: w.peerURL(m.ordinal),
			Started: m.started,
			Learner: m.learner,
			Leader:  m.id == r.leader,
			Answers: w.answers(r, m),
		}
		if m.named {
			entry.Name = w.memberName(m.ordinal)
		}
		for _, alarm := range r.alarms {
			if alarm.ID == m.id {
				entry.Alarms = append(entry.Alarms, alarm.Kind)
			}
		}
		if entry.Answers {
			w.sayOfItself(&entry, m.ordinal)
			if w.stuck.zombie[m.ordinal] {
				entry.Disagrees = "has a different member list"
			}
			if !m.learner && (w.doubted(r) || w.compares(r) || w.comparisonDue(r) || w.asksSource) {
				entry.Hash = w.hashOf(r, m)
			}
		} else if w.exists(w.customResource()) {
			entry.SilentSince = w.status.silent[m.id]
		}
		if w.exists(w.customResource()) {
			entry.Defragmented = w.status.defragmented[m.id]
		}
		list = append(list, entry)
	}
	return list
}

// usualSize is the database size of every member, in bytes; fullSize is the size of a full database.
const (
	usualSize = 20 << 20
	fullSize  = 2 << 30
)

// sayOfItself sets the values that a responding member reports about itself.
func (w *World) sayOfItself(entry *decide.Member, n int) {
	d := w.volumes[n].data
	entry.Version = w.pods[n].version
	entry.RaftIndex, entry.Applied = d.index, d.index
	entry.DBSize, entry.DBSizeInUse = w.sizeOf(d)
	if entry.Revision = cmp.Or(w.record.Restored.Revision, restoredRevision); w.startsElsewhere {
		entry.Revision--
	}
	if minorOf(entry.Version) >= saysStorage {
		entry.StorageVersion = minorText(d.storage)
	}
}

// peerURL returns a member's peer URL. A member that is not one of the cluster's replicas has a different kind of URL.
func (w *World) peerURL(n int) string {
	if n < 0 {
		return fmt.Sprintf("https://elsewhere%d:2380", n)
	}
	if url := w.Declared.Adoption.PeerURL; url != "" {
		return strings.Replace(url, "//"+w.replicaName(0)+".", "//"+w.replicaName(n)+".", 1)
	}
	return fmt.Sprintf("https://%s.%s:2380", w.replicaName(n), w.name)
}
