package forecast

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

func newStep(s decide.State, d decide.Decision, at Quorum) Step {
	step := Step{Rule: d.Rule, Action: d.Action, What: s.DescribeAction(d.Action), Before: at, Lowest: at, After: at}
	switch d.Action.(type) { //nolint:gochecksumtype // no other action discards acknowledged writes
	case decide.StartRecovery, decide.FinishRecovery:
		step.Discards = s.DescribeDiscarded()
	}
	return step
}

// watch records the changes to pods and volumes between two states, and the current quorum.
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
