package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// deletedAsDeclared: the objects of a cluster go only if git says so, and after its pods.
func deletedAsDeclared(s decide.State, d decide.Decision) string {
	if _, deletes := d.Action.(decide.DeleteObjects); !deletes {
		return ""
	}
	if s.Declared.Lifecycle != decide.Deleted {
		return "deletes the objects of a cluster that git does not declare deleted"
	}
	if s.Objects.RunsReplicas > 0 {
		return "deletes the objects of a cluster that may run"
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return "deletes the objects of " + podName(s, r.Ordinal) + ", which is still there"
		}
	}
	return ""
}

// downgradedAsDeclared: etcd is told to prepare for the minor version below the one that runs,
// where git asks for that or, for the sake of what is in the log, for the one above; and it is told
// to stop only where git does not ask for it, or where a new member could not join.
func downgradedAsDeclared(s decide.State, d decide.Decision) string {
	declaredMajor, declared, _ := minorOf(s.Declared.Version)
	switch a := d.Action.(type) {
	case decide.CancelDowngrade:
		major, minor, known := minorOf(a.Version)
		if !known || major == declaredMajor && minor == declared && !awaitsMember(s) {
			return fmt.Sprintf("%s, which git declares", d.Action)
		}
	case decide.EnableDowngrade:
		major, minor, known := minorOf(a.Version)
		isDeclared, isForTheLog := declared == minor, declared == minor+2
		if !known || major != declaredMajor || !isDeclared && !isForTheLog {
			return fmt.Sprintf("%s, and git declares %s", d.Action, s.Declared.Version)
		}
		isAbove := false
		for _, version := range versionsThatRun(s) {
			runsMajor, runs, known := minorOf(version)
			mayRun := runs == minor+1 || isDeclared && runs == minor
			if !known || runsMajor != major || !mayRun {
				return fmt.Sprintf("%s, and %s runs", d.Action, version)
			}
			isAbove = isAbove || runs == minor+1
		}
		if !isAbove {
			return fmt.Sprintf("%s, and nothing is known to run the minor version above", d.Action)
		}
	}
	return ""
}

// awaitsMember reports whether a member is still to join.
func awaitsMember(s decide.State) bool {
	for ordinal := range s.Declared.Replicas {
		if m, listed := memberAt(s, ordinal); !listed || !m.Started {
			return true
		}
	}
	for _, m := range s.Membership.Members {
		if !m.Started {
			return true
		}
	}
	return anyVolumeGoes(s)
}

// versionsThatRun are those that members say they run; if none does, the one that was last known,
// and without that, those that pods were made with.
func versionsThatRun(s decide.State) []string {
	var versions []string
	for _, m := range s.Membership.Members {
		if m.Answers && m.Version != "" {
			versions = append(versions, m.Version)
		}
	}
	if len(versions) > 0 {
		return versions
	}
	if s.ReportedVersion != "" {
		return []string{s.ReportedVersion}
	}
	for _, r := range s.Replicas {
		if r.PodVersion != "" {
			versions = append(versions, r.PodVersion)
		}
	}
	return versions
}
