package invariants

import "quorate.dev/quorate/reconcile/decide"

// defragmentationInvariants are the invariants about defragmentation, during which a member does not serve requests.
var defragmentationInvariants = []invariant{
	{Invariant{"a member is defragmented only while the others serve requests",
		"A member is defragmented only on request, or if git declares onNoSpace: Recover, a NOSPACE alarm is active " +
			"and the database uses at least 80 % of its quota, or if defragmentation is declared, the maintenance " +
			"window is open and the member's unused space reaches the declared thresholds. All members must be healthy voters that " +
			"match the spec. No backup may be in progress. The member must not be the leader, unless it is the only " +
			"voter."},
		defragmentedWithCare},
}

func defragmentedWithCare(s decide.State, d decide.Decision) string {
	a, defragments := d.Action.(decide.Defragment)
	if !defragments {
		return ""
	}
	m, _ := memberByID(s, a.ID)
	members := s.Membership.Members
	switch {
	case m.Leader && len(members) > 1:
		return "defragments the leader"
	case !allAnswer(members) || len(voters(s)) != len(members):
		return "defragments a member while another is not a healthy voter"
	case len(members) != s.Declared.Replicas || s.Membership.Downgrade != "":
		return "defragments a member while members change"
	case wronglyDefragmented(s, m):
		return "defragments a member unnecessarily"
	}
	for _, r := range s.Replicas {
		outdated := r.PodVersion != s.Declared.Version || r.PodSpecHash != s.Declared.SpecHash
		if r.PodVersion+r.PodSpecHash != "" && outdated {
			return "defragments a member during a rollout"
		}
	}
	for _, job := range s.Backups.Jobs {
		if job.Phase == decide.JobRuns {
			return "defragments a member during a backup"
		}
	}
	for kind := range alarmKinds(s) {
		if kind != decide.AlarmNoSpace {
			return "defragments a member during a " + string(kind) + " alarm"
		}
	}
	return ""
}

// wronglyDefragmented reports whether neither the declared thresholds nor an alarm nor a request requires the member to be
// defragmented.
func wronglyDefragmented(s decide.State, m decide.Member) bool {
	order, last := s.Declared.Defragmentation, s.DefragmentationRequest
	if order.Request != "" && (last.Request != order.Request || !last.Completed) {
		done := last.Request == order.Request && m.Defragmented.At.Sub(last.Since) >= 0 && s.Now.Sub(last.Since) >= 0
		return done && m.Defragmented.Failure != decide.Unfinished
	}
	if s.Declared.RecoversSpace && len(alarmKinds(s)) > 0 && m.DBSize*100 >= s.Declared.Quota*80 && s.Declared.Quota > 0 {
		return false
	}
	unused := m.DBSize - m.DBSizeInUse
	alone := len(s.Membership.Members) == 1 && !order.Windowed
	return order.MinFreePercent == 0 || s.WindowClosed || alone || unused < order.MinFree ||
		float64(unused) < float64(m.DBSize)*float64(order.MinFreePercent)/100*0.999999
}
