package status

import (
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Waited returns the waits of earlier passes, except those from the future, which would prolong a wait.
func Waited(custom *v1alpha1.EtcdCluster, now time.Time) []decide.Waited {
	var list []decide.Waited
	for _, w := range custom.Status.Waiting {
		if decide.YetToCome(w.Since.Time, now) || decide.YetToCome(w.Seen.Time, now) {
			continue
		}
		list = append(list, decide.Waited{Rule: w.Rule, For: w.For, Since: w.Since.UTC(), Seen: w.Seen.UTC()})
	}
	return list
}

// Repeated returns the actions that earlier passes carried out repeatedly.
func Repeated(custom *v1alpha1.EtcdCluster) []decide.Repeated {
	var list []decide.Repeated
	for _, r := range custom.Status.Repeated {
		list = append(list, decide.Repeated{Rule: r.Rule, What: r.What, Times: int(r.Times), Last: r.Last.UTC()})
	}
	return list
}

// StrandedBefore returns the time at which passes first found the volume of the member in a slot stranded. It returns
// zero if the last pass did not find it stranded, the member has changed, or the time is in the future.
func StrandedBefore(custom *v1alpha1.EtcdCluster, s decide.State, ordinal int) time.Time {
	if custom == nil {
		return time.Time{}
	}
	for _, m := range s.Membership.Members {
		if n, ours := s.OrdinalOf(m); !ours || n != ordinal {
			continue
		}
		for _, before := range custom.Status.Members {
			if before.ID == m.ID.String() && !before.StrandedSince.IsZero() &&
				!decide.YetToCome(before.StrandedSince.Time, s.Now) {
				return before.StrandedSince.UTC()
			}
		}
	}
	return time.Time{}
}

// RecallSilence sets the time at which silent members became silent. Silence during which etcd did not return a list or
// a leader does not count, because Quorate may have been cut off. Neither does a time in the future.
func RecallSilence(custom *v1alpha1.EtcdCluster, members []decide.Member, now time.Time) {
	if custom == nil || custom.Status.Leader == "" {
		return
	}
	for i := range members {
		m := &members[i]
		for _, before := range custom.Status.Members {
			silent := before.Health == v1alpha1.MemberUnreachable && !decide.YetToCome(before.Since.Time, now)
			if !m.Answers && before.ID == m.ID.String() && silent {
				m.SilentSince = before.Since.UTC()
			}
		}
	}
}

// LastSeen returns the members in the status, or nil if the status belongs to a different cluster.
func LastSeen(custom *v1alpha1.EtcdCluster, of decide.ID) []decide.SeenMember {
	if of == 0 || custom.Status.ClusterID != of.String() {
		return nil
	}
	var seen []decide.SeenMember
	for _, m := range custom.Status.Members {
		seen = append(seen, decide.SeenMember{Name: m.Name, Revision: m.Revision})
	}
	return seen
}
