package invariants

import "quorate.dev/quorate/reconcile/decide"

// alarmInvariants are those about what an alarm may hold up.
var alarmInvariants = []invariant{
	{Invariant{"healing under alarms", "AlarmRaised applies only while etcd lists every declared member."},
		healingUnderAlarms},
}

// healingUnderAlarms: a lost member is replaced first, since a learner can join while etcd refuses writes.
func healingUnderAlarms(s decide.State, d decide.Decision) string {
	if d.Rule != "AlarmRaised" {
		return ""
	}
	for ordinal := range s.Declared.Replicas {
		if _, listed := memberAt(s, ordinal); !listed {
			return "stops for an alarm while " + podName(s, ordinal) + " is missing"
		}
	}
	return ""
}
