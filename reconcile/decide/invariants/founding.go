package invariants

import "quorate.dev/quorate/reconcile/decide"

// foundsAnother reports whether all recorded members are initial members, and the cluster that they have formed has an
// ID other than the ID that follows from the record.
func foundsAnother(s decide.State) bool {
	if s.FoundingID == 0 || s.Record.ClusterID != 0 || s.ReportedClusterID != 0 || len(s.Record.Members) == 0 {
		return false
	}
	for _, m := range s.Record.Members {
		if m.Mode != decide.Founding {
			return false
		}
	}
	return cluster(s) != 0 && cluster(s) != s.FoundingID
}

func neverFoundedTwice(s decide.State, d decide.Decision) string {
	a, founds := d.Action.(decide.Bootstrap)
	begun := len(s.Record.Members) > 0
	switch {
	case !founds:
		return ""
	case a.Adopts != 0:
		return wronglyAdopted(s, a)
	case s.Declared.Adoption.ClusterID != 0 && !begun:
		return "bootstraps a cluster that should join another"
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return "bootstraps a cluster that has formed"
	case !begun && s.Declared.Lifecycle != decide.Running:
		return "bootstraps a cluster that should not run"
	case !begun && s.Declared.RenamedFrom != "":
		return "bootstraps an empty cluster instead of a renamed one"
	case !begun && a.Restores != (s.Declared.Restore.Digest != ""):
		return "bootstraps a cluster with data that is not declared"
	case !begun && a.Restores && a.Replicas != 1:
		return "restores more than one member"
	case !begun && !a.Restores && a.Replicas != s.Declared.Replicas:
		return "bootstraps with a different number of members than declared"
	case begun && a.Restores:
		return "restores into a cluster that is being bootstrapped"
	case begun && a.Replicas != len(s.Record.Members):
		return "continues a bootstrap with a different number of members"
	}
	for _, m := range s.Record.Members {
		if m.Mode != decide.Founding {
			return "bootstraps a cluster although a recorded member is not an initial member"
		}
	}
	if !begun && leftovers(s) {
		return "bootstraps a cluster although pods, volumes or a StatefulSet exist"
	}
	return ""
}

func leftovers(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent || r.VolumeUID != "" {
			return true
		}
	}
	return s.Objects.RunsVersion+s.Objects.RunsHash != ""
}
