package simulate

import (
	"maps"

	"quorate.dev/quorate/reconcile/decide"
)

// Fragment makes half of the space in a member's database unused.
func (w *World) Fragment(n int) {
	w.changeVolume(n, func(v *volume) { v.data.size, v.data.inUse = w.dbSize, w.dbSize/2 })
}

// KeepFragmented makes defragmenting a member have no effect.
func (w *World) KeepFragmented(n int) { w.stuck.fragmented = with(w.stuck.fragmented, n, true) }

// sizeOf returns the size of a member's database file and the part in use, in bytes.
func (w *World) sizeOf(d data) (size, inUse int64) {
	if d.size == 0 {
		return w.dbSize, w.dbSize
	}
	return d.size, d.inUse
}

// defragment returns the writes that record a member's defragmentation in the status and carry it out.
func (w *World) defragment(s decide.State, r *raft, a decide.Defragment) []write {
	m := r.byID(a.ID)
	if m == nil || s.RefuseDefragmentation(a.ID) != "" || !w.exists(w.customResource()) {
		return nil
	}
	return []write{{"status of " + w.customResource(), func() {
		w.status.request = s.RequestToReport(0)
		w.status.defragmented = maps.Clone(w.status.defragmented)
		if w.status.defragmented == nil {
			w.status.defragmented = map[decide.ID]decide.LastDefragmentation{}
		}
		w.status.defragmented[a.ID] = decide.LastDefragmentation{At: s.Now, Failure: decide.Unfinished}
	}}, {"defragment " + a.Name, func() {
		for _, other := range r.members {
			if !r.isUp(other.id) || other.learner {
				w.violate("%s is defragmented while %s is not a healthy voter", a.Name, w.memberName(other.ordinal))
			}
		}
		if r.leader == m.id && len(r.members) > 1 {
			w.violate("%s is defragmented although it is the leader", a.Name)
		}
		if !w.stuck.fragmented[m.ordinal] {
			w.changeVolume(m.ordinal, func(v *volume) { v.data.size = v.data.inUse })
		}
	}}}
}

// reportDefragmentation records in the status when each member was defragmented, and the state of the request.
func (t *status) reportDefragmentation(s decide.State, d decide.Decision, changed bool) {
	var tried decide.ID
	if a, is := d.Action.(decide.Defragment); is && changed {
		tried = a.ID
	}
	t.request = s.RequestToReport(tried)
	if !s.Membership.Known {
		return
	}
	t.defragmented = map[decide.ID]decide.LastDefragmentation{}
	for _, m := range s.Membership.Members {
		switch last := s.DefragmentationToReport(m); {
		case m.ID == tried:
			t.defragmented[m.ID] = decide.LastDefragmentation{At: s.Now}
		case !last.At.IsZero():
			t.defragmented[m.ID] = last
		}
	}
}
