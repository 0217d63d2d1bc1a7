package invariants

import "quorate.dev/quorate/reconcile/decide"

// alarmInvariants are the invariants about actions during active alarms.
var alarmInvariants = []invariant{
	{Invariant{"lost members are replaced despite alarms",
		"AlarmRaised applies only while etcd lists every declared member."},
		healingUnderAlarms},
	{Invariant{"rollouts wait for alarms",
		"While an alarm is active, no responding member is restarted for a rollout and no downgrade is enabled. If " +
			"all alarms are NOSPACE, a rollout is allowed if it raises at least one member's quota and does not " +
			"lower any."},
		rolloutsUnderAlarms},
	{Invariant{"only a declared recovery disarms NOSPACE of a current member",
		"A NOSPACE alarm of a current member is disarmed only if git declares onNoSpace: Recover, no other kind of " +
			"alarm is active, and every database is known to use less than 80 % of its quota."},
		disarmedWithRoom},
}

// disarmedWithRoom checks that passes disarm a NOSPACE alarm of a current member only if it would not be raised again.
func disarmedWithRoom(s decide.State, d decide.Decision) string {
	a, disarms := d.Action.(decide.DisarmAlarm)
	if _, listed := memberByID(s, a.ID); !disarms || !listed || a.Kind == decide.AlarmCorrupt {
		return ""
	}
	if a.Kind != decide.AlarmNoSpace || !s.Declared.RecoversSpace {
		return "disarms " + string(a.Kind) + " although git does not declare it"
	}
	for kind := range alarmKinds(s) {
		if kind != decide.AlarmNoSpace {
			return "disarms NOSPACE during a " + string(kind) + " alarm"
		}
	}
	for _, m := range s.Membership.Members {
		if !m.Answers || m.DBSize <= 0 || !belowQuota(s, m) {
			return "disarms NOSPACE although the database of " + m.Name + " may still be full"
		}
	}
	return ""
}

// belowQuota reports whether a member's database uses less than 80 % of the declared quota, which its pod has, too.
func belowQuota(s decide.State, m decide.Member) bool {
	for _, r := range s.Replicas {
		name := podName(s, r.Ordinal)
		outdated := r.PodVersion != s.Declared.Version || r.PodSpecHash != s.Declared.SpecHash
		if name == m.Name && r.PodVersion+r.PodSpecHash != "" && outdated {
			return false
		}
	}
	return m.DBSize*100 < s.Declared.Quota*80
}

// healingUnderAlarms checks that lost members are replaced first, because a learner can join while etcd rejects writes.
func healingUnderAlarms(s decide.State, d decide.Decision) string {
	if d.Rule != "AlarmRaised" {
		return ""
	}
	for ordinal := range wanted(s) {
		if _, listed := memberAt(s, ordinal); !listed {
			return "blocks because of an alarm while " + podName(s, ordinal) + " is missing"
		}
	}
	return ""
}

// rolloutsUnderAlarms checks that a rollout waits for active alarms, or raises a quota.
func rolloutsUnderAlarms(s decide.State, d decide.Decision) string {
	kinds := alarmKinds(s)
	switch a := d.Action.(type) {
	case decide.RestartReplica:
		if m, listed := memberAt(s, a.Ordinal); !listed || !m.Answers {
			return ""
		}
	case decide.EnableDowngrade:
	case decide.StartRollout:
		if !allAnswer(s.Membership.Members) || !s.Membership.Known {
			return "" // a member that is not running may start with the new spec
		}
	default:
		return ""
	}
	if len(kinds) == 0 {
		return ""
	}
	for kind := range kinds {
		if kind != decide.AlarmNoSpace {
			return "rolls out during a " + string(kind) + " alarm"
		}
	}
	return rolloutsWithoutQuota(s)
}

// rolloutsWithoutQuota checks that a rollout during a NOSPACE alarm raises at least one quota and does not lower any.
func rolloutsWithoutQuota(s decide.State) string {
	restarts, raises := false, false
	for _, r := range s.Replicas {
		known := r.PodVersion+r.PodSpecHash != "" && r.Pod != decide.PodAbsent
		if !known || r.PodVersion == s.Declared.Version && r.PodSpecHash == s.Declared.SpecHash {
			continue
		}
		restarts = true
		if r.PodQuota == 0 || r.PodQuota > s.Declared.Quota {
			return "rolls out during a NOSPACE alarm, and may lower the quota of " + podName(s, r.Ordinal)
		}
		raises = raises || r.PodQuota < s.Declared.Quota
	}
	if restarts && !raises {
		return "rolls out during a NOSPACE alarm without raising a quota"
	}
	return ""
}

// alarmKinds returns the kinds of all active alarms.
func alarmKinds(s decide.State) map[decide.AlarmKind]bool {
	kinds := map[decide.AlarmKind]bool{}
	for _, m := range s.Membership.Members {
		for _, kind := range m.Alarms {
			kinds[kind] = true
		}
	}
	for _, alarm := range s.Membership.StaleAlarms {
		kinds[alarm.Kind] = true
	}
	return kinds
}
