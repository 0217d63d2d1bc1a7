package etcd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"quorate.dev/quorate/reconcile/decide"
)

// membership joins the list with what the members say of themselves. Pods that answer for another cluster take no
// part in it.
func membership(list *clientv3.MemberListResponse, replies []reply) decide.Membership {
	clusterID := list.Header.ClusterId
	own := slices.DeleteFunc(slices.Clone(replies), func(r reply) bool {
		return r.answered() && r.status.Header.ClusterId != clusterID
	})
	m := decide.Membership{ClusterID: decide.ID(clusterID)}
	for _, entry := range list.Members {
		m.Members = append(m.Members, member(entry, clusterID, replies))
	}
	markLeader(m.Members, own)
	spreadAlarms(m.Members, own)
	return m
}

// member joins an entry of the list with the status of that member.
func member(entry *etcdserverpb.Member, clusterID uint64, replies []reply) decide.Member {
	m := decide.Member{
		ID:      decide.ID(entry.ID),
		Name:    entry.Name,
		Started: entry.Name != "" && len(entry.ClientURLs) > 0,
		Learner: entry.IsLearner,
	}
	if len(entry.PeerURLs) > 0 {
		m.PeerURL = entry.PeerURLs[0]
	}
	for _, r := range replies {
		if r.answered() && r.status.Header.ClusterId == clusterID && r.status.Header.MemberId == entry.ID {
			m.Answers = r.knowsLeader()
			if !m.Answers {
				m.Why = r.why()
			}
			m.Version = r.status.Version
			m.Revision = r.status.Header.Revision
			m.RaftIndex = r.status.RaftIndex
			m.DBSize, m.DBSizeInUse = r.status.DbSize, r.status.DbSizeInUse
			return m
		}
	}
	m.Why = absence(podOf(m), clusterID, replies)
	return m
}

// podOf returns the name of the pod that runs the member. One that has not started has no name; its peer URL
// starts with the name of its pod.
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

// absence says why nobody answered as the member that belongs in the pod.
func absence(pod string, clusterID uint64, replies []reply) string {
	for _, r := range replies {
		switch {
		case r.pod != pod:
			continue
		case !r.answered():
			return r.why()
		case r.status.Header.ClusterId != clusterID:
			return fmt.Sprintf("its pod answers for another cluster, %s", decide.ID(r.status.Header.ClusterId))
		default:
			return fmt.Sprintf("its pod answers as member %s", decide.ID(r.status.Header.MemberId))
		}
	}
	return "it has no pod to ask"
}

// markLeader takes the word of the best informed, and replies are sorted. A leader that does not answer is none:
// its followers believe in it until they elect another.
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

// spreadAlarms gives each alarm to the member that raised it. Every member knows the alarms of all, and tells
// them with its status, so that no question through the log is needed.
func spreadAlarms(members []decide.Member, replies []reply) {
	for _, r := range replies {
		if !r.answered() {
			continue
		}
		for _, complaint := range r.status.Errors {
			alarm := &etcdserverpb.AlarmMember{}
			// etcd sends an alarm as text; the only other complaint is the lack of a leader, see Member.Answers.
			if prototext.Unmarshal([]byte(complaint), alarm) == nil {
				raise(members, alarm)
			}
		}
	}
}

// raise adds the alarm to its member. The alarm of a member that has been removed holds until it is disarmed
// (survey H31); it is the leader's to show.
func raise(members []decide.Member, alarm *etcdserverpb.AlarmMember) {
	name := alarm.Alarm.String()
	i := slices.IndexFunc(members, func(m decide.Member) bool { return uint64(m.ID) == alarm.MemberID })
	if i < 0 {
		name = fmt.Sprintf("%s of %s, which is no member", name, decide.ID(alarm.MemberID))
		i = slices.IndexFunc(members, func(m decide.Member) bool { return m.Leader })
	}
	if i >= 0 && !slices.Contains(members[i].Alarms, name) {
		members[i].Alarms = append(members[i].Alarms, name)
	}
}
