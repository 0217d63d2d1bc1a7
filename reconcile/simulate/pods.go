package simulate

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// pod is a pod and the etcd in it.
type pod struct {
	uid           string
	version, hash string
	quota         int64
	wait          int // ticks until the container starts
	terminating   bool
	up            bool   // etcd runs
	message       string // why it does not, or is not ready
	failing       bool
	crashes       int
	ready         bool
	since         time.Time // since when it is not ready
	trusts        string    // the CA that etcd in it has started with
	started       time.Time // when etcd in it last started
	going         time.Time // when it was to be gone at the latest
	unbound       bool      // it was given a node before its claim was made
	unlisted      bool      // a label by which pods are listed was changed
}

// volume is a claim and the data on it.
type volume struct {
	uid         string
	token       string
	terminating bool
	stranded    string // why no pod can use it
	strandedAt  time.Time
	hung        bool      // whoever uses it hangs
	givenUp     bool      // a pass has deleted it
	unlisted    bool      // a label by which claims are listed was changed
	disowned    bool      // the label that says whose it is was taken off
	lostCluster decide.ID // that it is marked to be left of
	lastUse     decide.LastUse
	detached    bool // its claim is gone, or is another one by now; it goes with its pod
	data        data
}

// data is what etcd keeps on a volume; zero on an empty one.
type data struct {
	cluster decide.ID
	member  decide.ID
	index   uint64 // of the last entry of the log
	version int    // of the cluster, as a minor number
	ran     string // the version of etcd that last served on it
	storage int    // the version that it is written for
	wrote   int    // the oldest version that wrote what is in the log; zero for an empty log
	corrupt bool
	variant int // of the data; etcd serves any
}

// crashed is the pod after etcd in it has ended by itself.
func (p pod) crashed(words string) pod {
	p.up, p.failing, p.message = false, true, words
	p.crashes++
	return p
}

// stopping is the pod after it has been told to end.
func (p pod) stopping(now time.Time) pod {
	if !p.terminating {
		p.going = now.Add(30 * time.Second) // its grace period
	}
	p.terminating, p.up, p.ready = true, false, false
	return p
}

// runStatefulSet makes and deletes pods and volumes as the StatefulSet says. A pod takes a tick to
// go, and goes only once its node says so; a claim goes once no pod uses it.
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

// releaseVolume lets a claim go that is being deleted, once no pod uses it. A pod that has no node
// does not use it yet.
func (w *World) releaseVolume(n int) {
	v := w.volumes[n]
	_, used := w.pods[n]
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

// runPods starts the containers that can start; one that fails is started again with the next tick.
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

// judgePods says which pods are ready: those whose etcd answers and has a leader.
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
