package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// deletedAsDeclared checks that a cluster's objects are deleted only if git requests it, and only after its pods are
// gone.
func deletedAsDeclared(s decide.State, d decide.Decision) string {
	if _, deletes := d.Action.(decide.DeleteObjects); !deletes {
		return ""
	}
	if s.Declared.Lifecycle != decide.Deleted {
		return "deletes the objects of a cluster whose lifecycle is not Deleted"
	}
	if s.Objects.RunsReplicas > 0 {
		return "deletes the objects of a cluster that may run"
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return "deletes the objects of " + podName(s, r.Ordinal) + ", whose pod still exists"
		}
	}
	return ""
}

// downgradedAsDeclared checks that etcd prepares for the minor version below the running version only if git declares
// that version or, to clear the log, the minor version above. The downgrade is canceled only if git does not declare
// it, or a new member could not join.
func downgradedAsDeclared(s decide.State, d decide.Decision) string {
	declaredMajor, declared, _ := minorOf(s.Declared.Version)
	switch a := d.Action.(type) {
	case decide.CancelDowngrade:
		major, minor, known := minorOf(a.Version)
		if !known || major == declaredMajor && minor == declared && !awaitsMember(s) {
			return fmt.Sprintf("%s, although the spec declares that version", d.Action)
		}
	case decide.EnableDowngrade:
		major, minor, known := minorOf(a.Version)
		isDeclared, isForTheLog := declared == minor, declared == minor+2
		if !known || major != declaredMajor || !isDeclared && !isForTheLog {
			return fmt.Sprintf("%s, but the spec declares %s", d.Action, s.Declared.Version)
		}
		isAbove := false
		for _, version := range versionsThatRun(s) {
			runsMajor, runs, known := minorOf(version)
			mayRun := runs == minor+1 || isDeclared && runs == minor
			if !known || runsMajor != major || !mayRun {
				return fmt.Sprintf("%s, but a member runs %s", d.Action, version)
			}
			isAbove = isAbove || runs == minor+1
		}
		if !isAbove {
			return fmt.Sprintf("%s, but no member is known to run the next higher minor version", d.Action)
		}
	}
	return ""
}

// awaitsMember reports whether a member must still join.
func awaitsMember(s decide.State) bool {
	for ordinal := range wanted(s) {
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

// versionsThatRun returns the versions that members report or, without reports, the last known version or, if that
// version is unknown, the versions of the pods.
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
