package simulate

import (
	"cmp"

	"quorate.dev/quorate/reconcile/decide"
)

// stalls holds external faults that do not end by themselves.
type stalls struct {
	quota      bool         // pods cannot be created
	finalizer  bool         // claims are not deleted
	loyal      bool         // leaders do not transfer leadership
	zombie     map[int]bool // members with a different member list
	liar       map[int]bool // members that claim to be the only voter while no other member responds
	forbidden  bool         // Quorate is not allowed to reach etcd through the API server
	fragmented map[int]bool // members whose defragmentation has no effect
	// annotations is true if the API server drops annotations of claims, as an admission policy may do.
	annotations bool
}

// RefusePods makes the API server refuse new pods, as a quota does, or accept them again.
func (w *World) RefusePods(refuse bool) { w.stuck.quota = refuse }

// KeepClaims prevents the deletion of claims, as a stuck finalizer does, or allows it again.
func (w *World) KeepClaims(keep bool) { w.stuck.finalizer = keep }

// RefuseTransfer makes etcd refuse leadership transfers, or accept them again.
func (w *World) RefuseTransfer(refuse bool) { w.stuck.loyal = refuse }

// Mislead makes a member report a member list that differs from the lists of other members, or the right list again.
func (w *World) Mislead(n int, misled bool) { w.stuck.zombie = with(w.stuck.zombie, n, misled) }

// Lie makes a member report a different member list in which it is the leader and the only voter, or the right list
// again.
func (w *World) Lie(n int, lies bool) {
	w.Mislead(n, lies)
	w.stuck.liar = with(w.stuck.liar, n, lies)
}

// Forbid revokes Quorate's right to reach pods, or grants it again.
func (w *World) Forbid(forbid bool) { w.stuck.forbidden, w.cut = forbid, forbid }

// DropAnnotations removes the annotations of all claims. It makes the API server drop new annotations, or accept them
// again.
func (w *World) DropAnnotations(drop bool) {
	w.stuck.annotations = drop
	for n := range w.volumes {
		w.changeVolume(n, func(v *volume) { v.lastUse = decide.LastUse{} })
	}
}

// AnnotateVersions adds a version to the annotations of claims that lack one: the version that last ran with the data
// or, if etcd has never run with the data, the declared version.
func (w *World) AnnotateVersions() {
	for n, v := range w.volumes {
		if v.lastUse.Version == "" {
			w.changeVolume(n, func(v *volume) { v.lastUse.Version = cmp.Or(v.data.ran, w.Declared.Version) })
		}
	}
}

// with returns a copy of the set with or without an ordinal.
func with(set map[int]bool, n int, in bool) map[int]bool {
	next := map[int]bool{n: in}
	for k, v := range set {
		if k != n {
			next[k] = v
		}
	}
	return next
}
