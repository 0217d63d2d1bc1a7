package simulate

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// object is an existing Kubernetes object.
type object struct {
	uid string
	// owner is the UID of the owning custom resource, or empty.
	owner string
	// changed is true if the object was changed manually.
	changed bool
	// foreign is true if the object has the expected name but is not managed by Quorate.
	foreign bool
	// rewritten describes the policy that has set a field to a value other than the applied value.
	rewritten rewrite
	// leads is true if the client Service routes to members.
	leads bool
	// minAvailable is the value in the PodDisruptionBudget.
	minAvailable int
}

// statefulSet is the content of the StatefulSet.
type statefulSet struct {
	replicas             int
	version, hash, token string
	quota                int64
}

func (w *World) customResource() string { return "EtcdCluster " + w.name }
func (w *World) configMap() string      { return "ConfigMap " + w.name + "-members" }
func (w *World) ca() string             { return "Secret " + w.name + "-ca" }
func (w *World) peerService() string    { return "Service " + w.name }
func (w *World) clientService() string  { return "Service " + w.name + "-client" }
func (w *World) statefulSet() string    { return "StatefulSet " + w.name }
func (w *World) budget() string         { return "PodDisruptionBudget " + w.name }

// Objects lists the objects of the cluster in the order in which they are written.
func (w *World) Objects() []string {
	return []string{
		w.customResource(), w.configMap(), w.ca(),
		"Secret " + w.name + "-peer-tls", "Secret " + w.name + "-server-tls",
		"Secret " + w.name + "-quorate-tls", "Secret " + w.name + "-client-tls",
		w.peerService(), w.clientService(), w.budget(), w.statefulSet(),
	}
}

func (w *World) exists(name string) bool {
	o, there := w.objects[name]
	return there && !o.foreign
}

// remaining returns the existing objects except the custom resource.
func (w *World) remaining() []string {
	return slices.DeleteFunc(w.Objects(), func(name string) bool {
		return name == w.customResource() ||
			!w.exists(name)
	})
}

// differs describes how an object differs from the desired state, given the desired record. It returns an empty string
// if the object does not differ.
func (w *World) differs(name string, required decide.Record) string {
	o, there := w.objects[name]
	switch {
	case !there:
		return "missing"
	case o.changed:
		return "changed manually"
	case o.rewritten != asApplied && !w.isAccepted(name):
		return "changed at " + rewrittenField
	case name == w.customResource():
		if !sameDeclaration(w.applied, w.Declared) {
			return "changed in git"
		}
	case o.owner != w.objects[w.customResource()].uid:
		return "owned by a deleted custom resource"
	case w.certificates.worn[name]:
		return "its certificates are about to expire"
	case w.issued(name) != "":
		return w.issued(name)
	case name == w.configMap() && (!w.record.Equal(required) || w.joiningIsStale(required)):
		return "changed at data"
	case name == w.clientService() && !o.leads && !required.Closed():
		return "changed at spec.selector"
	case name == w.budget() && o.minAvailable != w.minAvailable(required):
		return "changed at spec.minAvailable"
	case name == w.statefulSet() && w.set != w.template(required):
		return "changed at spec"
	}
	return ""
}

// minAvailable returns the required value of the PodDisruptionBudget. The value does not decrease while membership is
// unknown.
func (w *World) minAvailable(required decide.Record) int {
	voters, guests, learners, atLeast := len(required.Members), 0, 0, w.objects[w.budget()].minAvailable
	if m := w.membership(); m.Known {
		guests = w.guestsIn(m)
		voters, atLeast = max(len(m.Voters())-guests, 1), 0
		learners = len(m.Members) - len(m.Voters())
	}
	return max(decide.MinAvailable(voters, guests, learners, len(required.Members), w.Declared.Replicas), atLeast)
}

// joiningIsStale reports whether the configuration file of a joining member does not list the current members. While
// etcd cannot be reached, the file is kept.
func (w *World) joiningIsStale(required decide.Record) bool {
	list, known := w.listedIDs()
	return known && joins(required) && !slices.Equal(list, w.initial)
}

func joins(record decide.Record) bool {
	return slices.ContainsFunc(record.Members, func(m decide.RecordedMember) bool { return m.Mode == decide.Joining })
}

// template returns the desired StatefulSet. After bootstrap, only a rollout changes the pod template. The token never
// changes, because volumes are created with it.
func (w *World) template(required decide.Record) statefulSet {
	t := statefulSet{replicas: required.Replicas(), version: w.Declared.Version, hash: w.Declared.SpecHash,
		token: required.Token, quota: w.Declared.Quota}
	if w.Declared.Lifecycle != decide.Running || required.Restoring() || required.Recovering() {
		t.replicas = 0
	}
	if !w.exists(w.statefulSet()) {
		return t
	}
	t.token = w.set.token
	if !w.beingFounded(required) && !required.Restoring() {
		t.version, t.hash, t.quota = w.set.version, w.set.hash, w.set.quota
	}
	return t
}

func (w *World) beingFounded(record decide.Record) bool {
	reported := w.exists(w.customResource()) && w.reported() != 0
	return record.ClusterID == 0 && !reported &&
		!slices.ContainsFunc(record.Members, func(m decide.RecordedMember) bool { return m.Mode != decide.Founding })
}

// write sets an object to its desired state, given the desired record.
func (w *World) write(name string, required decide.Record) {
	o, there := w.objects[name]
	if !there {
		o.uid = w.next("u")
	}
	changed := o.changed
	o.changed = false
	w.issue(name, there)
	switch name {
	case w.customResource():
		w.declare(!there, changed)
	case w.configMap():
		w.record = required
		w.putBack = w.putBack && required.MayFound()
		if w.beingFounded(required) {
			w.foundedWith = len(required.Members)
		}
		if list, known := w.listedIDs(); known && joins(required) {
			w.initial = list
		}
	case w.clientService():
		if !o.leads && !required.Closed() && w.startsElsewhere {
			w.violate("the client Service is opened although the data was not restored")
		}
		o.leads = o.leads || !required.Closed()
	case w.budget():
		o.minAvailable = w.minAvailable(required)
	case w.statefulSet():
		w.setStatefulSet(w.template(required))
	}
	w.objects[name] = o
	w.adopt(name)
	w.admit(name)
}

// mayLack reports whether an old record may lack a member until the voters respond and list it.
func (w *World) mayLack(m member) bool {
	v := w.volumes[m.ordinal]
	unknown := m.learner && v.lastUse == decide.LastUse{} // nothing shows that the learner has data
	_, runs := w.pods[m.ordinal]
	return unknown || !runs && (v.unlisted || m.learner)
}

// setStatefulSet writes the StatefulSet. It records a violation if this removes the pod of a listed member although the
// cluster should run.
func (w *World) setStatefulSet(next statefulSet) {
	for id, r := range w.rafts {
		for _, m := range r.members {
			restored := !r.formed && w.record.Restoring() // its volume is filled, but it has never run
			lost := w.announced(id)
			made := w.record.Recovering() && r.recoveredFrom != 0 && r.leader == 0 // recovered, but never served
			givenUp := made || r.leader == 0 &&
				(w.Declared.Recovery.ClusterID == lost || w.volumes[m.ordinal].lostCluster == lost)
			if m.ordinal >= next.replicas && !restored && !w.wasSplit(id) && !w.isNobodys(r) && !w.isLost(id) &&
				!givenUp && w.volumes[m.ordinal].data.member == m.id && w.Declared.Lifecycle == decide.Running {
				if w.mayLack(m) {
					continue
				}
				w.violate("the StatefulSet is scaled to %d, but etcd still lists %s", next.replicas,
					w.replicaName(m.ordinal))
			}
		}
	}
	if next.replicas == 0 && w.set.replicas > 0 {
		w.judgeLastBackup(w.record.ClusterID != 0, true)
	}
	w.set = next
}

// adopt makes the custom resource the owner of an object.
func (w *World) adopt(name string) {
	o, owner := w.objects[name], w.objects[w.customResource()].uid
	if name != w.customResource() && owner != "" {
		o.owner = owner
	}
	w.objects[name] = o
}

// collectGarbage deletes the objects whose owning custom resource is gone. Volumes do not have an owner.
func (w *World) collectGarbage() {
	owner := w.objects[w.customResource()].uid
	for _, name := range w.Objects() {
		if o := w.objects[name]; o.owner != "" && o.owner != owner {
			w.Delete(name)
		}
	}
	w.collectJobs(owner)
	if w.restores != nil && w.restores.owner != owner {
		w.DeleteRestore()
	}
	if w.recovers != nil && w.recovers.owner != owner {
		w.DeleteRecovery()
	}
}

func sameDeclaration(a, b decide.Declared) bool {
	return a.Replicas == b.Replicas && a.Version == b.Version && a.SpecHash == b.SpecHash &&
		a.Lifecycle == b.Lifecycle && a.Suspended == b.Suspended && a.Retention == b.Retention &&
		a.ReplaceAfter == b.ReplaceAfter && a.BacksUp == b.BacksUp && a.BackupDeadline == b.BackupDeadline &&
		a.BacksUpBeforeUpgrade == b.BacksUpBeforeUpgrade && a.BacksUpBeforeDeletion == b.BacksUpBeforeDeletion &&
		a.BackupTo == b.BackupTo && a.Restore == b.Restore && a.Recovery == b.Recovery
}

// guestsIn returns the number of listed members that are recorded as guests.
func (w *World) guestsIn(m decide.Membership) int {
	n := 0
	for _, member := range m.Members {
		if w.record.Hosts(member.ID) {
			n++
		}
	}
	return n
}
