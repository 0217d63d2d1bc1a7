package simulate

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// View is a function that returns the state that a pass observes, which may be incomplete or outdated.
type View func(*World) decide.State

// MissingClaim returns the view of a pass that does not find the claim of an ordinal, either in the list or by name.
func MissingClaim(n int) View {
	return func(w *World) decide.State {
		seen := w.Clone()
		delete(seen.volumes, n)
		return seen.observe(w.membership())
	}
}

// MissingPod returns the view of a pass that does not find the pod of an ordinal and does not contact its etcd.
func MissingPod(n int) View {
	return func(w *World) decide.State {
		seen := w.Clone()
		seen.mute[n] = true
		says := seen.membership()
		delete(seen.pods, n)
		return seen.observe(says)
	}
}

// OldKubernetes returns the view of a pass that sees the current etcd, and Kubernetes as it was the given number of
// ticks ago.
func OldKubernetes(ticks int) View {
	return func(w *World) decide.State {
		then, kept := w.ago(ticks)
		if !kept {
			return w.Observe()
		}
		seen := w.Clone()
		seen.objects, seen.applied, seen.status, seen.set = then.objects, then.applied, then.status, then.set
		seen.record, seen.initial, seen.letGo = then.record, then.initial, then.letGo
		seen.pods, seen.volumes = then.pods, then.volumes
		seen.backups.jobs, seen.backups.generation = then.backups.jobs, then.backups.generation
		return seen.observe(w.membership())
	}
}

// OldEtcd returns the view of a pass that sees the current Kubernetes objects, but the etcd state from the given number
// of ticks ago.
func OldEtcd(ticks int) View {
	return func(w *World) decide.State {
		then, kept := w.ago(ticks)
		if !kept {
			return w.Observe()
		}
		return w.observe(then.says)
	}
}

// PassWithView runs a pass that observes the world through the given view, decides, acts on the actual world, and
// reports.
func (w *World) PassWithView(see View) (decide.Decision, []string) {
	s := see(w)
	d := decide.Decide(s)
	var writes []string
	if d.Verdict == decide.Act {
		writes = w.DoSeen(s, d.Action, NoCrash)
	}
	changed := len(writes) > 0
	if changed {
		d = decide.Retried(s, d)
	} else {
		d = decide.NoProgress(s, d, "the write is rejected")
	}
	if w.report(s, d, changed) {
		writes = append(writes, "status of "+w.customResource())
	}
	return d, writes
}

// DoSeen executes an action that was decided from seen, which may be outdated. It reads again only the state that the
// real executor reads again, and relies on seen for everything else.
func (w *World) DoSeen(seen decide.State, action decide.Action, crashAfter int) []string {
	w.runEtcd()
	before := len(w.violations)
	writes := w.lateWrites(seen, action)
	w.violations = w.violations[:before] // when the action was decided, etcd would not have refused it yet
	var done []string
	for _, write := range writes {
		if len(done) == crashAfter {
			break
		}
		w.watched(write.name, write.do)
		done = append(done, write.name)
	}
	return done
}

func (w *World) lateWrites(seen decide.State, action decide.Action) []write {
	now := w.Observe()
	switch a := action.(type) {
	case decide.ApplyObjects, decide.Bootstrap, decide.Seal, decide.StartRollout, decide.Declare,
		decide.FinishRestore:
		// The record and the objects derived from it are written only if the record has not changed since.
		if !seen.Record.Equal(now.Record) || seen.Objects.RunsReplicas != now.Objects.RunsReplicas {
			return nil
		}
		going := slices.ContainsFunc(now.Replicas, func(r decide.Replica) bool {
			return r.VolumeTerminating && r.Pod != decide.PodTerminating && r.Pod != decide.PodAbsent
		})
		if _, applies := action.(decide.ApplyObjects); applies && going && seen.Declared.Lifecycle != decide.Running &&
			seen.Declared.Retention != decide.Delete {
			return nil
		}
		return w.untilConflict(seen, w.writesOf(seen, now, a))
	case decide.RestartReplica:
		if !w.mayRestart(seen, now, a) {
			return nil
		}
	case decide.DeleteVolume:
		if !w.mayDelete(seen, now, a) {
			return nil
		}
	}
	if decide.TraitsOf(action).ChangesEtcd && (!now.Membership.Known ||
		now.Membership.ClusterID != seen.Membership.ClusterID || w.slotTaken(seen, action) ||
		disproved(seen, now, action)) {
		return nil
	}
	return w.writes(now, action)
}

// writesOf returns the object writes for a previously observed state. Before sealing, etcd is queried again.
func (w *World) writesOf(seen, now decide.State, action decide.Action) []write {
	switch action.(type) {
	case decide.Seal:
		if !now.Membership.Known {
			return nil
		}
		seen.Membership = now.Membership
		return w.writes(seen, action)
	case decide.Bootstrap:
		if now.Formed() && !now.BeginsAdoption() {
			return nil
		}
	}
	return w.writes(seen, action)
}

// untilConflict returns the writes before the first object that was missing and now exists. The API server refuses to
// create such an object.
func (w *World) untilConflict(seen decide.State, writes []write) []write {
	order := w.Objects()
	conflict := slices.IndexFunc(order, func(name string) bool {
		return slices.Contains(seen.Objects.Drift, name+": missing") && w.exists(name)
	})
	if conflict < 0 {
		return writes
	}
	return slices.DeleteFunc(writes, func(write write) bool { return slices.Index(order, write.name) >= conflict })
}

// mayRestart reports whether a pod may still be restarted. A pod that served is kept if another member has since
// stopped responding, the pod of another member is not ready, or data is in doubt. A pod is also kept if its volume
// would now be deleted with it.
func (w *World) mayRestart(seen, now decide.State, a decide.RestartReplica) bool {
	name := seen.ReplicaName(a.Ordinal)
	is := func(m decide.Member) bool {
		ordinal, ours := seen.OrdinalOf(m)
		return ours && ordinal == a.Ordinal
	}
	served := slices.ContainsFunc(seen.Membership.Members, func(m decide.Member) bool { return is(m) && m.Answers })
	silent := slices.ContainsFunc(now.Membership.Members,
		func(m decide.Member) bool { return !is(m) && !m.Answers }) || othersUnready(now, name)
	was, then := seen.Replica(a.Ordinal), now.Replica(a.Ordinal)
	goes := was.VolumeUID != "" && !was.VolumeTerminating && (then.VolumeUID != was.VolumeUID || then.VolumeTerminating)
	return !goes && (!served || now.Membership.Known && !silent && !now.InDoubt())
}

// othersUnready reports whether the pod of a member other than name is not ready.
func othersUnready(now decide.State, name string) bool {
	return slices.ContainsFunc(now.Membership.Members, func(m decide.Member) bool {
		ordinal, ours := now.OrdinalOf(m)
		return ours && m.Name != name && now.Replica(ordinal).Pod != decide.PodReady
	})
}

// mayDelete reports whether a volume may still be deleted: etcd does not list the slot's member, and the data need not
// be kept.
func (w *World) mayDelete(seen, now decide.State, a decide.DeleteVolume) bool {
	if w.Declared.Lifecycle == decide.Deleted {
		return !w.anyPod()
	}
	listed := slices.ContainsFunc(now.Membership.Members, func(m decide.Member) bool {
		n, ours := now.OrdinalOf(m)
		return ours && n == a.Ordinal
	})
	again := seen
	again.Membership = now.Membership
	return now.Membership.Known && now.Membership.ClusterID == seen.Record.ClusterID && !listed &&
		!again.Keeps(a.Ordinal)
}

// slotTaken reports whether the slot of a member to add has a volume that may hold data. The volume is read by name.
func (w *World) slotTaken(seen decide.State, action decide.Action) bool {
	a, adds := action.(decide.AddLearner)
	v, there := w.volumes[a.Ordinal]
	if !adds || !there || v.terminating {
		return false
	}
	return !slices.ContainsFunc(seen.Record.Removed, func(gone decide.RemovedMember) bool {
		return gone.Ordinal == a.Ordinal && gone.VolumeUID != "" && gone.VolumeUID != v.uid
	})
}

// disproved reports whether a learner may no longer be promoted, or a member may no longer be removed. For example, a
// lost member may respond again, or its volume, which is read by name, may be usable again.
func disproved(seen, now decide.State, action decide.Action) bool {
	if a, promotes := action.(decide.PromoteLearner); promotes {
		again := seen
		again.Membership, again.Replicas = now.Membership, now.Replicas
		return !again.MayPromote(a.ID)
	}
	a, removes := action.(decide.RemoveMember)
	if !removes {
		return false
	}
	before, after := memberOf(seen, a.ID), memberOf(now, a.ID)
	ordinal, _ := seen.OrdinalOf(before)
	recorded, _ := seen.Record.Member(ordinal)
	was, is := seen.Replica(ordinal), now.Replica(ordinal)
	lost := recorded.VolumeUID != "" && was.VolumeUID != recorded.VolumeUID
	back := lost && is.VolumeUID == recorded.VolumeUID && !is.VolumeTerminating
	stays := was.VolumeTerminating && is.VolumeUID == was.VolumeUID && !is.VolumeTerminating
	unready := a.Evidence.Loss == "" && before.Answers && !before.Learner && othersUnready(now, before.Name)
	return unready || !before.Answers && after.Answers || back || stays || was.Stranded != "" && is.Stranded == "" ||
		decide.VotersChanged(seen.Membership, now.Membership, a.ID) || decide.FewerCopies(seen, now, a.ID)
}

func memberOf(s decide.State, id decide.ID) decide.Member {
	for _, m := range s.Membership.Members {
		if m.ID == id {
			return m
		}
	}
	return decide.Member{}
}
