package simulate

import "quorate.dev/quorate/reconcile/decide"

// stuck is what goes wrong around the cluster and does not end by itself.
type stuck struct {
	quota     bool         // no pod can be created
	finalizer bool         // no claim goes
	loyal     bool         // no leader hands over
	zombie    map[int]bool // members that believe in another list
	forbidden bool         // nobody may reach etcd through the API server
	// annotations: the API server keeps no annotation of a claim, as an admission policy may have it.
	annotations bool
}

// RefusePods makes the API server refuse every new pod, as a quota does, or ends that.
func (w *World) RefusePods(refuse bool) { w.stuck.quota = refuse }

// KeepClaims keeps claims from going, as a finalizer does that nobody takes off, or ends that.
func (w *World) KeepClaims(keep bool) { w.stuck.finalizer = keep }

// RefuseTransfer makes etcd refuse every transfer of leadership, or ends that.
func (w *World) RefuseTransfer(refuse bool) { w.stuck.loyal = refuse }

// Mislead makes a member believe in another member list than the others, or ends that.
func (w *World) Mislead(n int, misled bool) { w.stuck.zombie = with(w.stuck.zombie, n, misled) }

// Forbid takes the right to reach pods away from whoever observes them, or gives it back.
func (w *World) Forbid(forbid bool) { w.stuck.forbidden, w.cut = forbid, forbid }

// DropAnnotations takes the annotations off all claims and has the API server keep no new ones, or ends that.
func (w *World) DropAnnotations(drop bool) {
	w.stuck.annotations = drop
	for n := range w.volumes {
		w.changeVolume(n, func(v *volume) { v.lastUse = decide.LastUse{} })
	}
}

// with returns a copy of the set with that ordinal in it or not.
func with(set map[int]bool, n int, in bool) map[int]bool {
	next := map[int]bool{n: in}
	for k, v := range set {
		if k != n {
			next[k] = v
		}
	}
	return next
}
