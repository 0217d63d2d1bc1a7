package simulate

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// pod is a pod and its etcd.
type pod struct {
	uid           string
	version, hash string
	quota         int64
	wait          int // ticks until the container starts
	terminating   bool
	up            bool   // etcd is running
	message       string // why the pod is not running or not ready
	failing       bool
	crashes       int
	ready         bool
	since         time.Time // when it became unready
	trusts        string    // the CA with which its etcd started
	started       time.Time // when its etcd last started
	going         time.Time // deadline for its termination
	unbound       bool      // assigned to a node before its claim was created
	unlisted      bool      // a label used to list pods was changed
}

// volume is a claim and the data on it.
type volume struct {
	uid         string
	token       string
	terminating bool
	stranded    string // why pods cannot use it
	strandedAt  time.Time
	hung        bool      // I/O on it hangs
	givenUp     bool      // a pass has deleted it
	unlisted    bool      // a label used to list claims was changed
	disowned    bool      // the label that names its cluster was removed
	lostCluster decide.ID // the lost cluster that its mark names
	lastUse     decide.LastUse
	detached    bool // its claim is gone or was replaced; it is deleted with its pod
	data        data
}

// data is etcd's data on a volume. It is zero for an empty volume.
type data struct {
	cluster decide.ID
	member  decide.ID
	index   uint64 // of the last log entry
	version int    // the cluster version, as a minor number
	ran     string // the etcd version that last served with the data
	storage int    // the storage version, as a minor number
	wrote   int    // the oldest version that wrote entries in the log, as a minor number; zero for an empty log
	corrupt bool
	variant int // identifies the content; etcd serves any variant
	// size and inUse are the size of the database file and the part in use, in bytes. Both are zero if the size is
	// dbSize and all of it is in use.
	size, inUse int64
}

// crashed returns the pod after its etcd has exited on its own.
func (p pod) crashed(words string) pod {
	p.up, p.failing, p.message = false, true, words
	p.crashes++
	return p
}

// stopping returns the pod after its deletion was requested.
func (p pod) stopping(now time.Time) pod {
	if !p.terminating {
		p.going = now.Add(30 * time.Second) // its grace period
	}
	p.terminating, p.up, p.ready = true, false, false
	return p
}

// runStatefulSet creates and deletes pods and volumes as the StatefulSet specifies. A pod takes a tick to terminate. It
// is deleted only once its node confirms that it has ended. A claim that is being deleted is kept while a pod uses it.
func (w *World) runStatefulSet() {
	wanted := 0
	if w.exists(w.statefulSet()) {
		wanted, w.letGo = w.set.replicas, false
	}
	for _, n := range w.ordinals() {
		p, running := w.pods[n]
		switch {
		case running && p.terminating && !w.down[n]:
			delete(w.pods, n)
		case running && n >= wanted && !w.letGo:
			w.pods[n] = p.stopping(w.now)
		}
		w.releaseVolume(n)
	}
	for n := range wanted {
		w.makeReplica(n)
	}
}

// releaseVolume removes a claim that is being deleted unless a pod uses it. A pod cannot use a stranded volume. The pod
// of a Job uses the claim until the Job is deleted.
func (w *World) releaseVolume(n int) {
	v := w.volumes[n]
	_, used := w.pods[n]
	used = used || w.restores != nil && w.restores.VolumeUID == v.uid ||
		w.recovers != nil && w.recovers.VolumeUID == v.uid
	if v.detached && !used || v.terminating && !w.stuck.finalizer && (!used || v.stranded != "") {
		w.forgive(n)
		delete(w.volumes, n)
	}
}

func (w *World) makeReplica(n int) {
	if w.volumes[n].terminating {
		return
	}
	if _, there := w.volumes[n]; !there {
		w.volumes[n] = volume{uid: w.next("v"), token: w.set.token, data: w.dataBefore(n)}
	}
	if _, there := w.pods[n]; !there && !w.stuck.quota {
		w.pods[n] = pod{uid: w.next("p"), version: w.set.version, hash: w.set.hash, quota: w.set.quota,
			wait: 1 + w.delay(2), since: w.now}
	}
}

// runPods starts the containers that can start. A failed container is restarted with the next tick.
func (w *World) runPods() {
	for _, n := range w.ordinals() {
		p, there := w.pods[n]
		switch {
		case !there || p.terminating || p.up && !w.down[n]:
			continue
		case w.down[n]:
			p.up, p.message = false, "its node is down"
		case w.volumes[n].stranded != "":
			p.failing, p.message = false, "0/3 nodes are available: 3 node(s) had volume node affinity conflict"
		case p.unbound:
			p.failing, p.message = false, "unbound immediate PersistentVolumeClaims"
		case p.wait > 0:
			p.wait--
		default:
			p = w.startContainer(n, p)
		}
		w.pods[n] = p
	}
}

func (w *World) startContainer(n int, p pod) pod {
	p.failing = false
	if isGuest(n) {
		p.up = true
		return p
	}
	for _, name := range w.Objects() {
		if mounted := name == w.configMap() || name[:6] == "Secret"; mounted && !w.exists(name) {
			p.message = name + " not found"
			return p
		}
	}
	if p.version == w.Unpullable {
		p.failing, p.message = true, "ImagePullBackOff"
		return p
	}
	if words := w.startEtcd(n, p); words != "" {
		return p.crashed(words)
	}
	p.up, p.message, p.trusts, p.started = true, "", w.trust(), w.now
	return p
}

// judgePods updates the readiness of pods. A pod is ready if its etcd responds and has a leader.
func (w *World) judgePods() {
	for n, p := range w.pods {
		wasReady, v := p.ready, w.volumes[n]
		r := w.rafts[v.data.cluster]
		p.ready = p.up && !p.terminating && !v.hung && r.serves() && r.isUp(v.data.member) &&
			w.isOpen(r, v.data.member) && !w.unready[n]
		if wasReady && !p.ready {
			p.since = w.now
		}
		w.pods[n] = p
	}
}

func (p pod) phase() decide.PodPhase {
	switch {
	case p.terminating:
		return decide.PodTerminating
	case p.ready:
		return decide.PodReady
	case p.failing:
		return decide.PodFailing
	case p.up:
		return decide.PodStarting
	}
	return decide.PodPending
}
