package decide

import "fmt"

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
