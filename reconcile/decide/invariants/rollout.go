package invariants

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// rolloutInvariants are the invariants for the pod template used for new pods.
var rolloutInvariants = []invariant{
	{Invariant{"pods are not moved to a failing template",
		"A pod is not moved to a pod template with which another member's pod fails and no pod runs."},
		intoWhatRuns},
	{Invariant{"the kubelet restarts containers first",
		"While quorum depends on a voter, its failing pod is restarted only after two minutes, or after one minute " +
			"and four crashes."},
		leftToTheKubelet},
	{Invariant{"unresponsive members count",
		"While a member that may have data is unresponsive, a rollout changes the minor version only if a pod or " +
			"member already has the new minor version. A member never starts with a version that cannot follow the " +
			"version of its pod or the last version recorded on its claim, even if only volumes are left. An older " +
			"minor version also requires that etcd has prepared the downgrade."},
		unresponsiveCount},
}

// leavesFrom lists the oldest patch releases from which the next minor version may be reached, by minor number.
var leavesFrom = map[int]int{5: 26, 6: 11}

func unresponsiveCount(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.ApplyObjects:
		return wrongForVolumes(s)
	case decide.StartRollout:
		return wrongForUnresponsive(s, a.Version)
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		m, listed := memberAt(s, a.Ordinal)
		if listed && m.Started && !m.Answers && !r.PodUnbound && !r.VolumeTerminating {
			if what := wrongUse(s, r, s.Objects.RunsVersion); what != "" {
				return what
			}
			return wrongSuccessor(s, r, s.Objects.RunsVersion)
		}
	}
	return ""
}

// wrongForVolumes returns which volume a recreated StatefulSet would use with an etcd version that must not use it, or
// "".
func wrongForVolumes(s decide.State) string {
	if s.Objects.RunsVersion != "" || s.Objects.RunsReplicas > 0 || s.Declared.Lifecycle != decide.Running ||
		s.Membership.Known {
		return ""
	}
	for _, r := range s.Replicas {
		file, _ := recordedAt(s.Record, r.Ordinal)
		mayStart := file.Mode == decide.Sealed || len(s.Record.Members) == 0
		other := file.VolumeUID != "" && file.VolumeUID != r.VolumeUID
		if !mayStart || r.VolumeUID == "" || r.LostCluster != 0 || other {
			continue
		}
		if what := wrongUse(s, r, s.Declared.Version); what != "" {
			return what
		}
	}
	return ""
}

// wrongUse returns why a version must not use a volume, according to the volume's claim.
func wrongUse(s decide.State, r decide.Replica, version string) string {
	_, storage, known := minorOf(r.LastUse.StorageVersion)
	_, to, toKnown := minorOf(version)
	if known && toKnown && to < storage {
		return fmt.Sprintf("%s would run etcd %s on data of etcd %s", podName(s, r.Ordinal), version,
			r.LastUse.StorageVersion)
	}
	last := r
	last.PodVersion = r.LastUse.Version
	if _, from, _ := minorOf(last.PodVersion); toKnown && to > from {
		return wrongSuccessor(s, last, version)
	}
	return ""
}

// wrongForUnresponsive returns which unresponsive member a rollout ignores. If new pods already get the rollout's minor
// version, the rollout does not change anything.
func wrongForUnresponsive(s decide.State, version string) string {
	_, to, known := minorOf(version)
	_, from, _ := minorOf(s.Objects.RunsVersion)
	if begun := from == to; !known || begun || !s.Membership.Known {
		return ""
	}
	begun := anyRunsMinor(s, to)
	for _, m := range s.Membership.Members {
		ordinal, ours := slotOf(s, m)
		r := replicaAt(s, ordinal)
		recorded, _ := recordedAt(s.Record, ordinal)
		lost := recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID
		if !ours || m.Answers || !m.Started || lost || r.Pod == decide.PodAbsent && r.VolumeUID == "" {
			continue
		}
		if what := wrongSuccessor(s, r, version); what != "" {
			return what
		}
		if what := wrongUse(s, r, version); what != "" {
			return what
		}
		if changes := runsOtherMinor(s, to); changes && !begun {
			return "changes the minor version while " + podName(s, ordinal) + " does not respond"
		}
	}
	return ""
}

// anyRunsMinor reports whether any pod was created with the given minor version, or any responding member runs it.
func anyRunsMinor(s decide.State, minor int) bool {
	for _, r := range s.Replicas {
		if _, created, _ := minorOf(r.PodVersion); r.Pod != decide.PodAbsent && created == minor {
			return true
		}
	}
	for _, m := range s.Membership.Members {
		if _, runs, _ := minorOf(m.Version); m.Answers && runs == minor {
			return true
		}
	}
	return false
}

// runsOtherMinor reports whether a responding member runs a different minor version.
func runsOtherMinor(s decide.State, minor int) bool {
	for _, m := range s.Membership.Members {
		if _, runs, known := minorOf(m.Version); m.Answers && known && runs != minor {
			return true
		}
	}
	return false
}

// wrongSuccessor returns why a pod must not move from its version to the given version.
func wrongSuccessor(s decide.State, r decide.Replica, version string) string {
	_, from, known := minorOf(r.PodVersion)
	_, to, toKnown := minorOf(version)
	patch := 0
	if found := patchOf.FindStringSubmatch(r.PodVersion); found != nil {
		patch, _ = strconv.Atoi(found[1])
	}
	switch {
	case !known || !toKnown:
		return ""
	case to > from+1:
		return fmt.Sprintf("%s would skip a minor version from %s to %s", podName(s, r.Ordinal), r.PodVersion, version)
	case to == from+1 && patch < leavesFrom[from]:
		return fmt.Sprintf("%s would move from %s to %s, but a newer patch release is required first",
			podName(s, r.Ordinal), r.PodVersion, version)
	case to < from && s.Membership.Known && s.Membership.Downgrade != fmt.Sprintf("3.%d", to) && allNewer(s, to):
		return fmt.Sprintf("%s would be downgraded from %s to %s, but etcd has not prepared it", podName(s, r.Ordinal),
			r.PodVersion, version)
	}
	return ""
}

// patchOf matches a version, and captures the patch number.
var patchOf = regexp.MustCompile(`^\d+\.\d+\.(\d+)`)

// allNewer reports whether at least one member responds, and all responding members run a newer minor version.
func allNewer(s decide.State, minor int) bool {
	found := false
	for _, m := range s.Membership.Members {
		_, runs, known := minorOf(m.Version)
		if m.Answers && known && runs <= minor {
			return false
		}
		found = found || m.Answers && known
	}
	return found
}

// intoWhatRuns checks that a pod is not moved to a template with which other pods fail: with its current template, the
// pod may still recover.
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
		return "moves " + podName(s, a.Ordinal) + " to a pod template with which " + failing +
			" fails and no other pod runs"
	}
	return ""
}

// fares returns whether a pod shows that its template works, and whether it shows that its template fails. A starting
// pod without a recent crash shows neither.
func fares(s decide.State, r decide.Replica) (runs, fails bool) {
	m, _ := memberAt(s, r.Ordinal)
	file, recorded := recordedAt(s.Record, r.Ordinal)
	// The volume is the reason for the failure.
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
		return "restarts " + podName(s, a.Ordinal) + ", but quorum depends on it and it has only just failed"
	}
	return ""
}
