package decide

import "fmt"

// The shares of the quota, in percent, from which a database is reported as near its quota, and as almost full.
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

// Space returns how close the fullest database is to its quota, and the name of its member.
func (s State) Space() (fullest Space, name string) {
	most := -1.0
	for _, m := range s.MembersInOrder() {
		if percent, known := s.percentOfQuota(m); known && percent > most {
			most, name = percent, s.nameOf(m)
		}
	}
	switch {
	case most < 0:
		return SpaceUnknown, ""
	case most < nearQuota:
		return SpaceFree, name
	case most < almostFull:
		return SpaceNearQuota, name
	}
	return SpaceAlmostFull, name
}

// percentOfQuota returns the size of a member's database in percent of the declared quota, and whether it is known.
func (s State) percentOfQuota(m Member) (percent float64, known bool) {
	if s.Declared.Quota <= 0 || m.DBSize <= 0 {
		return 0, false
	}
	return float64(m.DBSize) / float64(s.Declared.Quota) * 100, true
}

// spaceWarnings returns warnings about members whose database is near the declared quota, or exceeds it. etcd does not
// shrink a database by itself.
func (s State) spaceWarnings() []string {
	var warnings []string
	for _, m := range s.MembersInOrder() {
		percent, known := s.percentOfQuota(m)
		size, quota := m.DBSize>>20, s.Declared.Quota>>20
		switch {
		case !known || percent < nearQuota:
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
