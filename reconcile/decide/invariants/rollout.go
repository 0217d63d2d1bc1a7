package invariants

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// rolloutInvariants are those about which declaration a pod is made from next.
var rolloutInvariants = []invariant{
	{Invariant{"into what runs",
		"No pod is moved to a declaration under which a member's pod fails and none runs well."}, intoWhatRuns},
	{Invariant{"left to the kubelet",
		"The pod of a voter that has failed for a moment only is not restarted while quorum depends on it."},
		leftToTheKubelet},
}

// intoWhatRuns: a member that does not run now may come back by itself where it is; where others
// fail, it may not.
func intoWhatRuns(s decide.State, d decide.Decision) string {
	a, restarts := d.Action.(decide.RestartReplica)
	r := replicaAt(s, a.Ordinal)
	moves := r.PodVersion+r.PodSpecHash != "" &&
		(r.PodVersion != s.Objects.RunsVersion || r.PodSpecHash != s.Objects.RunsHash)
	member, listed := memberAt(s, a.Ordinal)
	neverRan := r.PodUnbound || r.VolumeTerminating && !(listed && member.Started)
	if !restarts || !moves || neverRan {
		return ""
	}
	failing := ""
	for _, o := range s.Replicas {
		if o.Ordinal == a.Ordinal || o.PodVersion != s.Objects.RunsVersion || o.PodSpecHash != s.Objects.RunsHash {
			continue
		}
		runs, fails := fares(s, o)
		if runs {
			return ""
		}
		if fails {
			failing = podName(s, o.Ordinal)
		}
	}
	if failing != "" {
		return "moves " + podName(s, a.Ordinal) + " to a declaration under which " + failing +
			" fails and none runs well"
	}
	return ""
}

// fares: whether a pod shows that what it was made from runs, or that it does not. One that starts
// and has not crashed lately shows neither.
func fares(s decide.State, r decide.Replica) (runs, fails bool) {
	m, _ := memberAt(s, r.Ordinal)
	file, recorded := recordedAt(s.Record, r.Ordinal)
	// Is why it fails.
	itsVolume := r.NoData || r.Stranded != "" || file.VolumeUID != "" && file.VolumeUID != r.VolumeUID
	lacksQuorum := r.ClusterID != 0 && !r.PodStarted.IsZero() && s.Now.Sub(r.PodStarted) >= time.Minute
	hasJustCrashed := r.Pod == decide.PodStarting && r.PodCrashes > 0 && s.Now.Sub(r.PodStarted) < time.Minute
	return m.Answers || r.Pod == decide.PodReady || r.Pod == decide.PodStarting && lacksQuorum,
		recorded && !r.NoPeers && !itsVolume && (r.Pod == decide.PodFailing || hasJustCrashed)
}

func leftToTheKubelet(s decide.State, d decide.Decision) string {
	a, restarts := d.Action.(decide.RestartReplica)
	r := replicaAt(s, a.Ordinal)
	recorded, _ := recordedAt(s.Record, a.Ordinal)
	member, listed := memberAt(s, a.Ordinal)
	votes := recorded.Mode == decide.Sealed && !s.Membership.Known || listed && member.Started
	if !restarts || r.Pod != decide.PodFailing || !votes || listed && member.Learner {
		return ""
	}
	if s.Membership.Known && mostAnswer(s) {
		return ""
	}
	failed := s.Now.Sub(r.PodSince)
	if r.PodSince.IsZero() || failed < time.Minute || failed < 2*time.Minute && r.PodCrashes < 4 {
		return "restarts " + podName(s, a.Ordinal) + ", which quorum depends on and which has failed for a moment only"
	}
	return ""
}
