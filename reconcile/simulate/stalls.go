package simulate

import (
	"cmp"

	"quorate.dev/quorate/reconcile/decide"
)

// stalls holds faults around the cluster that do not end by themselves.
type stalls struct {
	quota     bool         // pods cannot be created
	finalizer bool         // claims are not deleted
	loyal     bool         // leaders do not hand over
	zombie    map[int]bool // members with a different member list
	forbidden bool         // etcd may not be reached through the API server
	// annotations is true if the API server drops annotations of claims, as an admission policy may do.
	annotations bool
}

// RefusePods makes the API server refuse new pods, as a quota does, or ends that.
func (w *World) RefusePods(refuse bool) { w.stuck.quota = refuse }

// KeepClaims keeps claims from being deleted, as a stuck finalizer does, or ends that.
func (w *World) KeepClaims(keep bool) { w.stuck.finalizer = keep }

// RefuseTransfer makes etcd refuse leadership transfers, or ends that.
func (w *World) RefuseTransfer(refuse bool) { w.stuck.loyal = refuse }

// Mislead gives a member a different member list than the others, or ends that.
func (w *World) Mislead(n int, misled bool) { w.stuck.zombie = with(w.stuck.zombie, n, misled) }

// Forbid revokes Quorate's right to reach pods, or grants it again.
func (w *World) Forbid(forbid bool) { w.stuck.forbidden, w.cut = forbid, forbid }

// DropAnnotations removes the annotations of all claims and makes the API server drop new ones, or ends that.
func (w *World) DropAnnotations(drop bool) {
	w.stuck.annotations = drop
	for n := range w.volumes {
		w.changeVolume(n, func(v *volume) { v.lastUse = decide.LastUse{} })
	}
}

// AnnotateVersions annotates the claims without a version with the one that last ran on them, or, if etcd never ran on
// them, with the declared one.
func (w *World) AnnotateVersions() {
	for n, v := range w.volumes {
		if v.lastUse.Version == "" {
			w.changeVolume(n, func(v *volume) { v.lastUse.Version = cmp.Or(v.data.ran, w.Declared.Version) })
		}
	}
}

// with returns a copy of the set with or without that ordinal.
func with(set map[int]bool, n int, in bool) map[int]bool {
	next := map[int]bool{n: in}
	for k, v := range set {
		if k != n {
			next[k] = v
		}
	}
	return next
}
