package etcd

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"quorate.dev/quorate/reconcile/decide"
)

// membership combines the list with the members' own status. It ignores pods of other clusters, and running members
// that are no longer in the list.
func (c Cluster) membership(list *clientv3.MemberListResponse, replies []reply) decide.Membership {
	clusterID := list.Header.ClusterId
	own := slices.DeleteFunc(slices.Clone(replies), func(r reply) bool {
		return r.answered() && (r.status.Header.ClusterId != clusterID || find(list, r.id()) == nil)
	})
	m := decide.Membership{ClusterID: decide.ID(clusterID)}
	for _, entry := range list.Members {
		m.Members = append(m.Members, c.member(entry, clusterID, replies))
	}
	markLeader(m.Members, own)
	m.Downgrade = downgrade(own)
	position := map[decide.ID]int{}
	for i, member := range m.Members {
		position[member.ID] = i
	}
	for _, alarm := range alarms(own) {
		if i, listed := position[alarm.ID]; listed {
			m.Members[i].Alarms = append(m.Members[i].Alarms, alarm.Kind)
		} else {
			m.StaleAlarms = append(m.StaleAlarms, alarm)
		}
	}
	return m
}

// tooManyAlarms makes a membership unknown if members report more alarms than the limit.
func tooManyAlarms(m *decide.Membership) bool {
	n := len(m.StaleAlarms)
	for _, member := range m.Members {
		n += len(member.Alarms)
	}
	if n > maxAlarms {
		*m = decide.Membership{Why: fmt.Sprintf(
			"the members report %d alarms, more than the limit of %d; disarm them with etcdctl, or check that "+
				"the pods are running etcd", n, maxAlarms)}
	}
	return n > maxAlarms
}

// entryOf returns a member as it is listed.
func entryOf(entry *etcdserverpb.Member) decide.Member {
	m := decide.Member{
		ID:      decide.ID(entry.ID),
		Name:    entry.Name,
		Started: entry.Name != "" && len(entry.ClientURLs) > 0,
		Learner: entry.IsLearner,
	}
	if len(entry.PeerURLs) > 0 {
		m.PeerURL = entry.PeerURLs[0]
	}
	if len(entry.PeerURLs) > 1 {
		m.MorePeerURLs = slices.Clone(entry.PeerURLs[1:])
	}
	return m
}

// member combines an entry of the list with the status of that member.
func (c Cluster) member(entry *etcdserverpb.Member, clusterID uint64, replies []reply) decide.Member {
	m := entryOf(entry)
	r := replyOf(entry.ID, clusterID, replies)
	if r == nil {
		m.Why = c.absence(m, clusterID, replies)
		return m
	}
	m.Answers = r.knowsLeader()
	if !m.Answers {
		m.Why = r.why()
	}
	m.Version, m.StorageVersion = r.status.Version, minor(r.status.StorageVersion)
	m.Revision = r.status.Header.Revision
	m.RaftIndex, m.Applied = r.status.RaftIndex, r.status.RaftAppliedIndex
	m.DBSize, m.DBSizeInUse = r.status.DbSize, r.status.DbSizeInUse
	return m
}

// replyOf returns the reply of the member with this ID in the given cluster, or nil.
func replyOf(id, clusterID uint64, replies []reply) *reply {
	for i, r := range replies {
		if r.answered() && r.status.Header.ClusterId == clusterID && r.status.Header.MemberId == id {
			return &replies[i]
		}
	}
	return nil
}

// foreign reports whether a member is not a replica, even if its name is a pod's name.
func (c Cluster) foreign(m decide.Member) bool { return c.Foreign != nil && c.Foreign(m) }

// podOf returns the name of the pod that runs a replica. A member that has not started has no name, but its
// peer URL starts with the name of its pod.
func podOf(m decide.Member) string {
	if m.Name != "" {
		return m.Name
	}
	peer, err := url.Parse(m.PeerURL)
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(peer.Hostname(), ".")
	return pod
}

// absence returns why the member did not respond.
func (c Cluster) absence(m decide.Member, clusterID uint64, replies []reply) string {
	if c.foreign(m) {
		return unreachableGuest(replies)
	}
	pod := podOf(m)
	for _, r := range replies {
		switch {
		case r.pod != pod:
			continue
		case !r.answered():
			return r.why()
		case r.status.Header.ClusterId != clusterID:
			return fmt.Sprintf("its pod belongs to a different cluster, %s", decide.ID(r.status.Header.ClusterId))
		default:
			return fmt.Sprintf("its pod is running member %s", decide.ID(r.status.Header.MemberId))
		}
	}
	return "it has no running pod"
}

// unreachableGuest returns why a member that is not a replica did not respond. It names the endpoints that did not
// respond, because each of them may lead to the member.
func unreachableGuest(replies []reply) string {
	const unknown = "no responding endpoint in spec.adopt leads to it"
	silent := slices.DeleteFunc(slices.Clone(replies), func(r reply) bool { return !r.endpoint || r.answered() })
	if len(silent) == 0 {
		return unknown
	}
	return readable(unknown+"; "+why(silent), longestList)
}

// markLeader marks the leader according to the best-informed member. replies must be sorted. It does not mark a leader
// that is not responding, although the leader's followers treat it as the leader until they elect another.
func markLeader(members []decide.Member, replies []reply) {
	for _, r := range replies {
		if !r.knowsLeader() {
			continue
		}
		for i := range members {
			members[i].Leader = members[i].Answers && uint64(members[i].ID) == r.status.Leader
		}
		return
	}
}

// downgrade returns the downgrade that the best-informed member reports. etcd 3.5 does not report downgrades.
func downgrade(replies []reply) string {
	for _, r := range replies {
		if r.knowsLeader() && r.status.DowngradeInfo != nil {
			return r.downgrade()
		}
	}
	return ""
}

// alarms returns the alarms that any member reports, sorted by ID and kind, without duplicates. Every member knows all
// alarms and includes them in its status, so no request through the log is needed. An alarm of a removed member remains
// until it is disarmed (hard case H31).
func alarms(replies []reply) []decide.Alarm {
	var found []decide.Alarm
	for _, r := range replies {
		if !r.answered() {
			continue
		}
		for _, complaint := range r.status.Errors {
			alarm := &etcdserverpb.AlarmMember{}
			// etcd reports each alarm as text. The only other error is a missing leader, see Member.Answers.
			if prototext.Unmarshal([]byte(complaint), alarm) == nil {
				found = append(found, decide.Alarm{ID: decide.ID(alarm.MemberID),
					Kind: decide.AlarmKind(alarm.Alarm.String())})
			}
		}
	}
	slices.SortFunc(found, func(a, b decide.Alarm) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(found)
}
