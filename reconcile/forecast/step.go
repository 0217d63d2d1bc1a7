package forecast

import (
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

func newStep(s decide.State, d decide.Decision, at Quorum) Step {
	return Step{Rule: d.Rule, Action: d.Action, What: What(s, d.Action), Before: at, Lowest: at, After: at}
}

// watch records the changes of pods and volumes between two states, and the current quorum.
func (step *Step) watch(before, now decide.State, at Quorum) {
	step.After = at
	if at.Spare() < step.Lowest.Spare() {
		step.Lowest = at
	}
	for _, r := range before.Replicas {
		name, later := before.ReplicaName(r.Ordinal), now.Replica(r.Ordinal)
		if r.VolumeUID != "" && r.VolumeUID != later.VolumeUID {
			add(&step.Deletes, name)
		}
		gone := later.Pod == decide.PodAbsent
		switch {
		case r.Pod == decide.PodAbsent || r.PodUID == later.PodUID && !gone:
		case gone:
			add(&step.Stops, name)
		default:
			add(&step.Restarts, name)
		}
	}
	for _, r := range now.Replicas {
		name, earlier := now.ReplicaName(r.Ordinal), before.Replica(r.Ordinal)
		if r.VolumeUID != "" && r.VolumeUID != earlier.VolumeUID {
			add(&step.Creates, name)
		}
		if r.Pod == decide.PodAbsent || earlier.Pod != decide.PodAbsent {
			continue
		}
		if i := slices.Index(step.Stops, name); i >= 0 {
			step.Stops = slices.Delete(step.Stops, i, i+1)
			add(&step.Restarts, name)
		} else {
			add(&step.Starts, name)
		}
	}
}

func add(names *[]string, name string) {
	if !slices.Contains(*names, name) {
		*names = append(*names, name)
	}
}

// What describes an action using member names instead of IDs.
func What(s decide.State, action decide.Action) string {
	kind := decide.KindOf(action)
	switch a := action.(type) {
	case decide.Bootstrap, decide.StartRollout, decide.EnableDowngrade, decide.CancelDowngrade:
		return withoutHash(action.String())
	case decide.Seal:
		return kind + " " + namesOf(s, a.Members)
	case decide.StopReplicas:
		return kind + " " + namesOf(s, a.Ordinals)
	case decide.AddLearner:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case decide.PromoteLearner:
		return kind + " " + a.Name
	case decide.RemoveMember:
		return kind + " " + a.Name
	case decide.MoveLeader:
		return kind + " " + nameOf(s, a.From) + " to " + nameOf(s, a.To)
	case decide.DisarmAlarm:
		return kind + " " + string(a.Kind)
	case decide.RestartReplica:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case decide.DeleteVolume:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case decide.StartRecovery:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case decide.ApplyObjects, decide.RenewCertificates, decide.Declare, decide.StopPods, decide.DeleteObjects,
		decide.StartBackup, decide.DiscardBackup, decide.StartRestore, decide.StopRestore, decide.FinishRestore,
		decide.StopRecovery, decide.FinishRecovery:
	}
	return kind
}

// withoutHash removes the hash of the pod template.
func withoutHash(text string) string {
	before, _, _ := strings.Cut(text, " hash=")
	return before
}

func namesOf(s decide.State, set decide.Ordinals) string {
	var names []string
	for _, ordinal := range set.List() {
		names = append(names, s.ReplicaName(ordinal))
	}
	return decide.Enumerate(names)
}

func nameOf(s decide.State, id decide.ID) string {
	for _, m := range s.Membership.Members {
		if m.ID == id {
			return m.Name
		}
	}
	return id.String()
}
