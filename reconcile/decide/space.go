package decide

import (
	"fmt"
	"slices"
)

// The percentages of the quota from which a database is reported as near its quota or almost full.
const (
	nearQuota  = 80
	almostFull = 95
)

// Space is how close the members' databases are to their quota.
type Space string

// The values of Space, in ascending order.
const (
	SpaceUnknown    Space = ""
	SpaceFree       Space = "Free"
	SpaceNearQuota  Space = "NearQuota"
	SpaceAlmostFull Space = "AlmostFull"
)

// Percent returns the smallest percentage of the quota that counts as this value.
func (s Space) Percent() int {
	return map[Space]int{SpaceNearQuota: nearQuota, SpaceAlmostFull: almostFull}[s]
}

// Space returns how close the fullest database is to its quota, and the name of its member. It is unknown while a
// smaller database may not be the fullest, because a member does not report a size.
func (s State) Space() (fullest Space, name string) {
	most, all := -1.0, true
	for _, m := range s.MembersInOrder() {
		percent, known := s.percentOfQuota(m)
		if known && percent > most {
			most, name = percent, s.nameOf(m)
		}
		all = all && known
	}
	switch {
	case most < 0 || most < nearQuota && !all:
		return SpaceUnknown, ""
	case most < nearQuota:
		return SpaceFree, name
	case most < almostFull:
		return SpaceNearQuota, name
	}
	return SpaceAlmostFull, name
}

// percentOfQuota returns the size of a member's database as a percentage of the declared quota, and whether the
// percentage is known.
func (s State) percentOfQuota(m Member) (percent float64, known bool) {
	if s.Declared.Quota <= 0 || m.DBSize <= 0 {
		return 0, false
	}
	return float64(m.DBSize) / float64(s.Declared.Quota) * 100, true
}

// runsWithDeclaredQuota reports whether a member responds and its pod was created from the current declaration.
func (s State) runsWithDeclaredQuota(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	return ours && m.Answers && s.Replica(ordinal).Pod != PodAbsent && !s.madeOtherwise(s.Replica(ordinal))
}

// recoversSpace reports whether git declares that passes end the NOSPACE alarms, and no other alarm is active.
func (s State) recoversSpace() bool {
	return s.Declared.RecoversSpace && s.onlyOutOfSpace() && slices.ContainsFunc(s.Membership.Members,
		func(m Member) bool { return len(m.Alarms) > 0 })
}

// hasRoom reports whether a member runs with the declared quota and its database is known to be well below it.
func (s State) hasRoom(m Member) bool {
	percent, known := s.percentOfQuota(m)
	return known && percent < nearQuota && s.runsWithDeclaredQuota(m)
}

// lacksRoom reports whether a member must make room, because a NOSPACE alarm is active and its database is near or above
// its quota.
func (s State) lacksRoom(m Member) bool {
	percent, known := s.percentOfQuota(m)
	return s.recoversSpace() && known && percent >= nearQuota
}

// hasToMakeRoom reports whether a member must be defragmented to end a NOSPACE alarm. etcd may not yet report that
// space is unused, because it does so only with the next write. An attempt without success is therefore repeated.
func (s State) hasToMakeRoom(m Member) bool {
	if !s.lacksRoom(m) {
		return false
	}
	pause, inUse := defragmentationPause, float64(m.DBSizeInUse)/float64(s.Declared.Quota)*100
	switch {
	case m.Defragmented.Failure == Unfinished:
		pause = 0
	case m.Defragmented.Failure == "" && m.DBSizeInUse > 0 && inUse < nearQuota:
		pause = defragmentationLimit
	}
	return !s.attemptedWithin(m, pause)
}

// outOfSpaceNoMore returns the NOSPACE alarms that passes must disarm, because all databases have room again.
func (s State) outOfSpaceNoMore() []Alarm {
	if !s.recoversSpace() || !all(s.Membership.Members, s.hasRoom) {
		return nil
	}
	var list []Alarm
	for _, m := range s.Membership.Members {
		if len(m.Alarms) > 0 {
			list = append(list, Alarm{m.ID, AlarmNoSpace})
		}
	}
	return list
}

// spaceWarnings returns warnings about members whose database is near or above the declared quota. etcd does not shrink
// a database by itself.
func (s State) spaceWarnings() []string {
	var warnings []string
	for _, m := range s.MembersInOrder() {
		percent, known := s.percentOfQuota(m)
		size, quota := m.DBSize>>20, s.Declared.Quota>>20
		switch {
		case !known || percent < nearQuota:
		case percent >= 100 && s.runsWithDeclaredQuota(m):
			warnings = append(warnings, fmt.Sprintf("the database of %s has reached its quota of %dMi: etcd rejects "+
				"writes. Compact and defragment, or declare a larger etcd.quota", s.nameOf(m), quota))
		case percent < 100:
			warnings = append(warnings, fmt.Sprintf("the database of %s uses %dMi of the declared etcd quota of %dMi: "+
				"if it reaches the quota, etcd rejects writes. Compact and defragment, or declare a larger etcd.quota",
				s.nameOf(m), size, quota))
		default:
			warnings = append(warnings,
				fmt.Sprintf("the database of %s uses %dMi, but the declared etcd quota is %dMi: etcd will reject "+
					"writes once it runs with this quota. Declare a larger etcd.quota, or compact and defragment first",
					s.nameOf(m), size, quota))
		}
	}
	return warnings
}
