package decide

import (
	"fmt"
	"slices"
	"strings"
)

// alarmed reports whether an alarm is active, so that etcd rejects writes.
func (s State) alarmed() bool {
	return len(s.Membership.StaleAlarms) > 0 ||
		slices.ContainsFunc(s.Membership.Members, func(m Member) bool { return len(m.Alarms) > 0 })
}

// onlyOutOfSpace reports whether all active alarms are NOSPACE.
func (s State) onlyOutOfSpace() bool {
	noSpace := func(kind AlarmKind) bool { return kind == AlarmNoSpace }
	for _, m := range s.Membership.Members {
		if !all(m.Alarms, noSpace) {
			return false
		}
	}
	return all(s.Membership.StaleAlarms, func(a Alarm) bool { return noSpace(a.Kind) })
}

func all[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(one T) bool { return !is(one) })
}

// heldByAlarm returns why an active alarm prevents restarts for the current declaration, or "". An alarm does not
// prevent restarts if all pods are up to date, or if the rollout raises the quota whose exhaustion caused a NOSPACE
// alarm (hard case H109).
func (s State) heldByAlarm() string {
	if !s.alarmed() || !s.anyReplica(s.madeOtherwise) {
		return ""
	}
	if !s.onlyOutOfSpace() {
		return "pods are not restarted for spec changes while this alarm is active"
	}
	raised := false
	for _, r := range s.replicasInOrder() {
		switch {
		case !s.madeOtherwise(r):
		case r.PodQuota == 0 || s.Declared.Quota == 0:
			return fmt.Sprintf("during a NOSPACE alarm, only a larger etcd.quota is rolled out, but %s's quota is "+
				"unknown", s.ReplicaName(r.Ordinal))
		case r.PodQuota > s.Declared.Quota:
			return fmt.Sprintf("during a NOSPACE alarm, only a larger etcd.quota is rolled out, but %s already "+
				"has a larger quota than declared", s.ReplicaName(r.Ordinal))
		case r.PodQuota < s.Declared.Quota:
			raised = true
		}
	}
	if !raised {
		return "during a NOSPACE alarm, only a larger etcd.quota is rolled out"
	}
	return ""
}

// describeAlarms describes a member's alarms in a phrase to append to the member's name.
func (m Member) describeAlarms() string {
	if len(m.Alarms) == 1 {
		return "has a " + string(m.Alarms[0]) + " alarm"
	}
	return "has " + Enumerate(m.AlarmNames()) + " alarms"
}

// alarms returns the active alarms, except alarms of members that etcd no longer lists.
func (s State) alarms() []string {
	var facts []string
	for _, m := range s.MembersInOrder() {
		if len(m.Alarms) > 0 {
			facts = append(facts, s.nameOf(m)+" "+m.describeAlarms())
		}
	}
	for _, alarm := range s.Membership.staleAlarms() {
		if alarm.ID == unidentified {
			facts = append(facts, fmt.Sprintf("a %s alarm is active for an unidentified member", alarm.Kind))
		}
	}
	return facts
}

// alarmRaised blocks if an alarm requires manual action. Before that, lost members are replaced and a larger quota is
// rolled out. For CORRUPT alarms, dataInDoubt determines which data is right.
func alarmRaised(s State) (Decision, bool) {
	facts := s.alarms()
	held := s.heldByAlarm()
	_, free := s.freeOrdinal()
	if !s.Membership.Known || len(facts) == 0 || free || held == "" && s.lacksBackup() {
		return Decision{}, false
	}
	message := strings.Join(facts, "; ")
	switch space, _ := s.Space(); {
	case !s.onlyOutOfSpace():
	case s.recoversSpace():
		message += fmt.Sprintf(". Delete keys and compact, or declare a larger etcd.quota. The alarm is disarmed once "+
			"every database uses less than %d %% of its quota", nearQuota)
		if why := s.whyNotDefragment(); why != "" && len(s.dueForDefragmentation()) > 0 {
			message += ". Members are not defragmented: " + why
		}
	case space == SpaceFree:
		message += ". The databases have room again; run etcdctl alarm disarm"
	default:
		message += ". Compact and defragment, or declare a larger etcd.quota; then run etcdctl alarm disarm"
	}
	if held != "" {
		message += ". The rollout is on hold: " + held
	}
	_, backsUp := s.startDueBackup() // see besideBackup
	d, applies := defragment(s)
	switch {
	case !applies || backsUp:
	case s.recoversSpace():
		return d, true
	case d.Verdict == Act:
		d.Message += ". Manual action is also required: " + message
		return d, true
	}
	return block("%s", message)
}

// EtcdWarnings returns warnings about every active alarm, regardless of the decision, and about members whose database
// exceeds the declared quota.
func (s State) EtcdWarnings() []string {
	var warnings []string
	for _, fact := range s.alarms() {
		warnings = append(warnings, fact+": etcd rejects writes")
	}
	for _, alarm := range s.Membership.staleAlarms() {
		if alarm.ID != unidentified {
			warnings = append(warnings, s.describeAlarm(alarm)+" is still active: etcd rejects writes")
		}
	}
	return slices.Concat(warnings, s.spaceWarnings(), s.comparisonWarnings())
}
