package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// status, list and header return an honest response with changes applied.
func status(q question, change func(*etcdserverpb.StatusResponse)) proto.Message {
	answer := honest(question{method: "Status", ordinal: q.ordinal}, 3).(*etcdserverpb.StatusResponse)
	change(answer)
	return answer
}

func list(q question, change func(*etcdserverpb.MemberListResponse)) proto.Message {
	answer := honest(question{method: "MemberList", ordinal: q.ordinal}, 3).(*etcdserverpb.MemberListResponse)
	change(answer)
	return answer
}

// to returns the given response to every request of one method.
func to(method string, answer func(question) proto.Message) func(question) proto.Message {
	return func(q question) proto.Message {
		if q.method == method {
			return answer(q)
		}
		return nil
	}
}

func statuses(change func(*etcdserverpb.StatusResponse)) func(question) proto.Message {
	return to("Status", func(q question) proto.Message { return status(q, change) })
}

func lists(change func(*etcdserverpb.MemberListResponse)) func(question) proto.Message {
	return to("MemberList", func(q question) proto.Message { return list(q, change) })
}

// TestHonestServersAreAccepted checks the baseline. Each of the tests below changes only one thing.
func TestHonestServersAreAccepted(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(func(question) proto.Message { return nil })
	cluster := s.cluster()
	cluster.CompareData = true
	answer := newClients(t).Observe(t.Context(), cluster)
	if !allAnswer(3)(answer.Membership) {
		t.Fatalf("got %s", print(answer))
	}
	for _, m := range answer.Membership.Members {
		if m.Disagrees != "" || !m.Hash.Known() {
			t.Errorf("got %+v", m)
		}
	}
}

// TestMalformedAnswersAreRejected checks that a response with a single invalid value is rejected as a whole.
func TestMalformedAnswersAreRejected(t *testing.T) {
	const headless = "its response does not identify its member"
	for _, test := range []struct {
		what, why string
		say       func(question) proto.Message
	}{
		{"an empty status", headless, to("Status", func(question) proto.Message { return &etcdserverpb.StatusResponse{} })},
		{"an empty list", headless, to("MemberList", func(question) proto.Message { return &etcdserverpb.MemberListResponse{} })},
		{"a status without a cluster ID", headless, statuses(func(s *etcdserverpb.StatusResponse) { s.Header.ClusterId = 0 })},
		{"a status without a member ID", headless, statuses(func(s *etcdserverpb.StatusResponse) { s.Header.MemberId = 0 })},
		{"a list without a cluster ID", headless, lists(func(l *etcdserverpb.MemberListResponse) { l.Header.ClusterId = 0 })},
		{"a list from a different cluster", "its response identifies a different member", lists(func(l *etcdserverpb.MemberListResponse) { l.Header.ClusterId++ })},
		{"a list from a different member", "its response identifies a different member", lists(func(l *etcdserverpb.MemberListResponse) { l.Header.MemberId += 7 })},
		{"a list without members", "it does not list any members", lists(func(l *etcdserverpb.MemberListResponse) { l.Members = nil })},
		{"a member without an ID", "it lists a member without an ID", lists(func(l *etcdserverpb.MemberListResponse) { l.Members[1].ID = 0 })},
		{"an empty member", "it lists a member without an ID", lists(func(l *etcdserverpb.MemberListResponse) { l.Members[2] = &etcdserverpb.Member{} })},
		{"a duplicate member", "it lists member 1 twice", lists(func(l *etcdserverpb.MemberListResponse) { l.Members[1].ID = 1 })},
		{"too many members", "it lists 65 members, more than the limit of 64", lists(func(l *etcdserverpb.MemberListResponse) { l.Members = listed(65) })},
		{"too many alarms", "it reports 1025 alarms, more than the limit of 1024", statuses(func(s *etcdserverpb.StatusResponse) { s.Errors = make([]string, 1025) })},
		{"a long list", "its response is longer than 256 KiB", lists(func(l *etcdserverpb.MemberListResponse) { l.Members[0].Name = strings.Repeat("a", 256<<10) })},
		{"a long status", "its response is longer than 256 KiB", statuses(func(s *etcdserverpb.StatusResponse) { s.Version = strings.Repeat("3", 256<<10) })},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newStrangers(t, 3)
			s.say(test.say)
			answer := newClients(t).Observe(t.Context(), s.cluster())
			if m := answer.Membership; m.Known || !strings.HasPrefix(m.Why, "a-0, a-1, a-2: "+test.why) {
				t.Errorf("want %q: %s", test.why, print(answer))
			}
		})
	}
}

// TestLyingPodCountsAsUnreachable checks that a pod with invalid responses counts as not responding, so that only the
// other pods' responses are used.
func TestLyingPodCountsAsUnreachable(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(func(q question) proto.Message {
		if q.ordinal == 0 && q.method == "MemberList" {
			return &etcdserverpb.MemberListResponse{Members: listed(1)}
		}
		return nil
	})
	answer := newClients(t).Observe(t.Context(), s.cluster())
	if m := answer.Membership; !m.Known || m.ClusterID != strangerClusterID || len(m.Members) != 3 {
		t.Errorf("got %s", print(answer))
	}
}

// TestTotalAlarmsAreLimited checks that the limit for one member's alarms also applies to all members together. If the
// limit is exceeded, the cluster counts as one that may still serve, so that it is not recovered from a single member.
func TestTotalAlarmsAreLimited(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(to("Status", func(q question) proto.Message {
		return status(q, func(s *etcdserverpb.StatusResponse) {
			for i := range 1024 {
				s.Errors = append(s.Errors, fmt.Sprintf("memberID:%d alarm:NOSPACE", 10_000*(q.ordinal+1)+i))
			}
		})
	}))
	answer := newClients(t).Observe(t.Context(), s.cluster())
	if m := answer.Membership; m.Known || !m.MayServe() || !strings.Contains(m.Why, "report 3072 alarms, more than the limit of 1024") {
		t.Errorf("got %d alarms, %q", len(m.StaleAlarms), m.Why)
	}
}

func TestSizesAndRevisionsAreNeverNegative(t *testing.T) {
	s := newStrangers(t, 1)
	s.say(statuses(func(s *etcdserverpb.StatusResponse) { s.DbSize, s.DbSizeInUse, s.Header.Revision = -1, -2, -3 }))
	answer := newClients(t).Observe(t.Context(), s.cluster())
	for _, m := range answer.Membership.Members {
		if m.DBSize < 0 || m.DBSizeInUse < 0 || m.Revision < 0 {
			t.Errorf("got %+v", m)
		}
	}
}

// TestHugeMemberListIsRejectedInTime checks that rejecting a huge list takes no longer than the members' timeout.
func TestHugeMemberListIsRejectedInTime(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(lists(func(l *etcdserverpb.MemberListResponse) {
		l.Members = listed(40_000)
		for _, m := range l.Members[3:] {
			m.ID += l.Header.MemberId << 32 // all pods return different IDs
		}
	}))
	clients := newClients(t)
	start := time.Now()
	answer := clients.Observe(t.Context(), s.cluster())
	took := time.Since(start)
	t.Logf("took %s", took)
	if took > 2*etcd.DefaultTimeout || answer.Membership.Known {
		t.Errorf("took %s; known: %v", took, answer.Membership.Known)
	}
}

// TestEtcdTextIsTruncatedAndEscaped checks that text from etcd is truncated to a readable length, and that terminal
// control characters in it are escaped, before it is shown in reports and in the status.
func TestEtcdTextIsTruncatedAndEscaped(t *testing.T) {
	hostile := "\x1b[2J\u202e" + strings.Repeat("w", 10_000)
	for what, say := range map[string]func(question) proto.Message{
		"status": statuses(func(s *etcdserverpb.StatusResponse) {
			s.Version, s.StorageVersion, s.DowngradeInfo = hostile, hostile+".1", &etcdserverpb.DowngradeInfo{Enabled: true, TargetVersion: hostile + ".1"}
		}),
		"list": to("MemberList", func(q question) proto.Message {
			return list(q, func(l *etcdserverpb.MemberListResponse) {
				l.Members[1].Name, l.Members[2].PeerURLs = hostile, []string{hostile, fmt.Sprint(q.ordinal / 2), hostile}
				l.Members[2].Name = ""
			})
		}),
	} {
		s := newStrangers(t, 3)
		s.say(say)
		answer := newClients(t).Observe(t.Context(), s.cluster())
		if !answer.Membership.Known {
			t.Errorf("%s: got %s", what, print(answer))
		}
		checkReadable(t, answer)
	}
	s := newStrangers(t, 1)
	refuse := func(question) ([]byte, error) { return nil, fmt.Errorf("%s\n%s", hostile, hostile) }
	s.answer.Store(&refuse)
	checkReadable(t, newClients(t).Observe(t.Context(), s.cluster()))
	clients := newClients(t)
	if err := clients.RemoveMember(t.Context(), s.cluster(), 1); err == nil {
		t.Error("a member was removed")
	} else {
		checkWord(t, err.Error())
	}
}

// checkReadable checks every text in an answer. The limit for a list of differences is 4,096 bytes.
func checkReadable(t testing.TB, answer etcd.Answer) {
	t.Helper()
	m := answer.Membership
	words := []string{m.Why, m.Downgrade}
	for _, member := range m.Members {
		words = append(words, member.Name, member.PeerURL, member.Version, member.StorageVersion, member.Why, member.Disagrees, member.HashWhy)
		words = append(words, member.AlarmNames()...)
	}
	for _, word := range words {
		checkWord(t, word)
	}
}

func checkWord(t testing.TB, word string) {
	t.Helper()
	if len(word) > 4096 || !printable.Is(strings.ReplaceAll(word, "\ufffd", "?")) {
		t.Errorf("%d bytes: %.200q", len(word), word)
	}
}

// TestEmptyChangeResponseIsRejected checks that an empty response to a change is rejected, because the change may or
// may not have been made.
func TestEmptyChangeResponseIsRejected(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(func(q question) proto.Message {
		if q.method == "Status" || q.method == "MemberList" {
			return nil
		}
		return &etcdserverpb.MemberAddResponse{}
	})
	clients := newClients(t)
	if on, err := clients.AuthEnabled(t.Context(), s.cluster()); err == nil {
		t.Errorf("authentication is reported as enabled: %t, without a response", on)
	}
	for what, change := range changes(clients, s.cluster()) {
		err := change(t)
		if what == "MoveLeader" { // etcd's own response to MoveLeader is empty
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err == nil || !strings.HasSuffix(err.Error(), "its response does not identify its member; it is not known whether etcd has applied the change") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// changes returns all changes that can be requested from etcd, by etcd's method name.
func changes(clients *etcd.Clients, cluster etcd.Cluster) map[string]func(testing.TB) error {
	return map[string]func(testing.TB) error{
		"MemberAdd": func(t testing.TB) error {
			id, err := clients.AddLearner(t.Context(), cluster, "http://new:2380")
			if err == nil && id == 0 {
				t.Error("a learner was added without an ID")
			}
			return err
		},
		"MemberPromote": func(t testing.TB) error { return clients.PromoteLearner(t.Context(), cluster, 77) },
		"MemberRemove":  func(t testing.TB) error { return clients.RemoveMember(t.Context(), cluster, 2) },
		"MoveLeader":    func(t testing.TB) error { return clients.MoveLeader(t.Context(), cluster, 1, 2) },
		"Alarm": func(t testing.TB) error {
			return clients.DisarmAlarm(t.Context(), cluster, decide.Alarm{ID: 1, Kind: "NOSPACE"})
		},
		"Downgrade":       func(t testing.TB) error { return clients.EnableDowngrade(t.Context(), cluster, "3.5") },
		"CancelDowngrade": func(t testing.TB) error { return clients.CancelDowngrade(t.Context(), cluster) },
	}
}

// TestInvalidSecondStatusIsNotUsed checks that a member's second status is not used if it is invalid, even if the first
// one was valid.
func TestInvalidSecondStatusIsNotUsed(t *testing.T) {
	s := newStrangers(t, 3)
	var asked [3]atomic.Int32
	s.say(to("Status", func(q question) proto.Message {
		if asked[q.ordinal].Add(1) > 1 {
			return &etcdserverpb.StatusResponse{IsLearner: true}
		}
		return status(q, func(s *etcdserverpb.StatusResponse) { s.IsLearner = q.ordinal == 2 })
	}))
	answer := newClients(t).Observe(t.Context(), s.cluster())
	disagrees := func(m decide.Member) bool { return m.Disagrees != "" }
	if m := answer.Membership; !m.Known || slices.ContainsFunc(m.Members, disagrees) {
		t.Errorf("got %s", print(answer))
	}
	for i := range asked {
		asked[i].Store(0)
	}
	s.say(to("Status", func(q question) proto.Message {
		if asked[q.ordinal].Add(1) > 1 {
			return &etcdserverpb.StatusResponse{}
		}
		return status(q, func(s *etcdserverpb.StatusResponse) {
			s.DowngradeInfo = &etcdserverpb.DowngradeInfo{Enabled: true, TargetVersion: "3.5.0"}
		})
	}))
	if err := newClients(t).CancelDowngrade(t.Context(), s.cluster()); err == nil || !strings.Contains(err.Error(), "its response does not identify its member") {
		t.Errorf("got %v", err)
	}
}
