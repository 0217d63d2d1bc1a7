package decide

import "fmt"

// SeenMember is a member as last reported in the custom resource's status.
type SeenMember struct {
	Name string `json:"name"`
	// Revision is a lower bound of the revision that the member had reached, because not every change is recorded.
	Revision int64 `json:"revision,omitempty"`
}

// describeLoss returns the last known revisions of the members, the recovery source first, and the newest backup, or
// "".
func (s State) describeLoss() string {
	if s.Declared.Recovery.Backup != "" {
		return s.describeLastSeen() + s.describeNewestBackup()
	}
	survivor := s.ReplicaName(s.Declared.Recovery.Ordinal)
	has, others := s.lastRevision(survivor), []string(nil)
	var newest int64
	for _, m := range s.LastSeen {
		if revision := s.lastRevision(m.Name); m.Name != survivor && revision > 0 {
			others = append(others, fmt.Sprintf("%s at %d", m.Name, revision))
			newest = max(newest, revision)
		}
	}
	text := ""
	switch {
	case has == 0 || len(others) == 0:
	case newest > has:
		text = fmt.Sprintf("; last seen: %s at revision %d, %s. Up to %s may be missing from %[1]s's log and "+
			"would be lost", survivor, has, Enumerate(others), plural(int(newest-has), "revision", "revisions"))
	default:
		text = fmt.Sprintf("; last seen: %s at revision %d, and no other member was ahead of it: %s", survivor, has,
			Enumerate(others))
	}
	return text + s.describeNewestBackup()
}

// DescribeDiscarded describes the data that is discarded when a new cluster replaces the lost cluster.
func (s State) DescribeDiscarded() string {
	switch order := s.Declared.Recovery; {
	case order.ClusterID == 0: // withdrawn after the recovery has begun
		return "discards writes that the new cluster has not received"
	case order.Backup != "":
		return "discards writes after " + order.Backup
	default:
		return "discards writes that " + s.ReplicaName(order.Ordinal) + " has not received"
	}
}

// describeLastSeen returns the last known revisions of the members, or "".
func (s State) describeLastSeen() string {
	var seen []string
	for _, m := range s.LastSeen {
		if revision := s.lastRevision(m.Name); revision > 0 {
			seen = append(seen, fmt.Sprintf("%s at revision %d", m.Name, revision))
		}
	}
	if len(seen) == 0 {
		return ""
	}
	return "; last seen: " + Enumerate(seen)
}

// lastRevision returns the highest known revision of a member, or zero.
func (s State) lastRevision(name string) int64 {
	var revision int64
	for _, m := range s.LastSeen {
		if m.Name == name {
			revision = max(revision, m.Revision)
		}
	}
	for _, m := range s.Membership.Members {
		if m.Name == name {
			revision = max(revision, m.Revision)
		}
	}
	return revision
}

// describeNewestBackup describes the cluster's newest backup, which may be newer than a member's data, or returns "".
func (s State) describeNewestBackup() string {
	last := s.Backups.Last
	if last == nil || last.ClusterID != s.Record.ClusterID {
		return ""
	}
	return fmt.Sprintf("; newest backup: %s, revision %d", last.Slot.UTC().Format(SlotLayout), last.Revision)
}
