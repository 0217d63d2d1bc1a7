package etcd_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// FuzzObserve runs an untrusted server for each pod, which replays the responses in its tape. Whatever the servers
// send, Observe must finish in bounded time without a panic. A Known membership must be confirmed by a quorum of its
// voters, with responses that etcd could have sent.
func FuzzObserve(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed[0], seed[1], seed[2], true)
	}
	f.Add([]byte(nil), []byte(nil), []byte(nil), false)
	s := newStrangers(f, 3)
	clients := newClients(f)
	clients.Timeout = 25 * time.Millisecond
	f.Fuzz(func(t *testing.T, a, b, c []byte, last bool) {
		clients.Close() // an existing connection would be tried twice
		sent := &sent{lists: map[int][][]byte{}}
		tapes := []*tape{{rest: a}, {rest: b}, {rest: c}}
		answer := func(q question) ([]byte, error) {
			message, err := tapes[q.ordinal].answer(q)
			sent.keep(q, message)
			return message, err
		}
		s.answer.Store(&answer)
		cluster := s.cluster()
		cluster.CompareData, cluster.Pods[2].Gone = true, last

		start := time.Now()
		heard := clients.Observe(t.Context(), cluster)
		checkTime(t, "observe", start)
		checkAnswer(t, heard)
		if m := heard.Membership; m.Known && sent.behind(m) < decide.Quorum(len(m.Voters())) {
			t.Errorf("no quorum has sent this: %s", print(heard))
		}
		checkDecision(t, heard)
		tell := changes(clients, cluster)
		tell["AuthStatus"] = func(t testing.TB) error { _, err := clients.AuthEnabled(t.Context(), cluster); return err }
		for _, what := range slices.Sorted(maps.Keys(tell)) {
			start := time.Now()
			if err := tell[what](t); err != nil {
				checkWord(t, err.Error())
			}
			checkTime(t, what, start)
		}
	})
}

// checkTime checks that Observe took no longer than a few timeouts. Here, the timeouts and the pauses between hashes
// are a few hundred milliseconds each.
func checkTime(t *testing.T, what string, start time.Time) {
	if took := time.Since(start); took > 10*time.Second { // allows for a busy machine
		t.Errorf("%s took %s", what, took)
	}
}

func checkAnswer(t *testing.T, answer etcd.Answer) {
	m := answer.Membership
	alarms, leaders, seen := len(m.StaleAlarms), 0, map[decide.ID]bool{}
	for _, member := range m.Members {
		alarms += len(member.Alarms)
		if member.ID == 0 || seen[member.ID] {
			t.Errorf("member %s", member.ID)
		}
		seen[member.ID] = true
		if member.Leader {
			leaders++
		}
		if !member.Answers && (member.Leader || member.Hash.Known() || member.Why == "") || member.DBSize < 0 || member.DBSizeInUse < 0 || member.Revision < 0 {
			t.Errorf("got %+v", member)
		}
	}
	if leaders > 1 || alarms > 1024 || len(m.Members) > 64 || m.Known == (m.Why != "") || strings.HasSuffix(m.Why, ": ") || m.Known && len(m.Members) == 0 {
		t.Errorf("%d leaders, %d alarms: %s", leaders, alarms, print(answer))
	}
	for pod, id := range answer.ClusterIDs {
		if id == 0 {
			t.Errorf("%s does not report a cluster ID", pod)
		}
	}
	checkReadable(t, answer)
}

// checkDecision passes the answer to decide.Decide.
func checkDecision(t *testing.T, answer etcd.Answer) {
	record := decide.Record{Token: "t", ClusterID: strangerClusterID}
	state := decide.State{Name: name, Declared: decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: "Running"}, Membership: answer.Membership}
	for i := range 3 {
		record = record.With(decide.RecordedMember{Ordinal: i, Mode: decide.Sealed, ID: decide.ID(i + 1), VolumeUID: fmt.Sprint("v", i)})
		state.Replicas = append(state.Replicas, decide.Replica{
			Ordinal: i, PodUID: fmt.Sprint("p", i), Pod: decide.PodReady, VolumeUID: fmt.Sprint("v", i), ClusterID: answer.ClusterIDs[pod(i)],
		})
	}
	state.Record = record
	if d := decide.Decide(state); len(d.String()) > 32<<10 { // a status condition holds at most this much
		t.Errorf("%d bytes: %.1000s", len(d.String()), d)
	}
}

// sent records the member lists that each server sent.
type sent struct {
	mu    sync.Mutex
	lists map[int][][]byte
}

func (s *sent) keep(q question, message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.method == "MemberList" {
		s.lists[q.ordinal] = append(s.lists[q.ordinal], message)
	}
}

// behind counts the servers that sent a valid list that matches the membership, as different voters.
func (s *sent) behind(m decide.Membership) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := map[decide.ID]bool{}
	for _, lists := range s.lists {
		for _, message := range lists {
			list := &etcdserverpb.MemberListResponse{}
			if proto.Unmarshal(message, list) == nil && len(message) <= 256<<10 && matches(list, m) {
				by[decide.ID(list.Header.MemberId)] = true
			}
		}
	}
	return len(by)
}

// matches reports whether the list was sent by a voter of the membership and contains the same members.
func matches(list *etcdserverpb.MemberListResponse, m decide.Membership) bool {
	if list.Header == nil || m.ClusterID == 0 || decide.ID(list.Header.ClusterId) != m.ClusterID || len(list.Members) != len(m.Members) {
		return false
	}
	learners := map[decide.ID]bool{}
	for _, said := range list.Members {
		learners[decide.ID(said.ID)] = said.IsLearner
	}
	sender := decide.ID(list.Header.MemberId)
	return slices.ContainsFunc(m.Voters(), func(v decide.Member) bool { return v.ID == sender }) &&
		!slices.ContainsFunc(m.Members, func(heard decide.Member) bool {
			learner, said := learners[heard.ID]
			return !said || learner != heard.Learner
		})
}

// tape encodes the responses of one server, in order. Once the tape ends, the server responds honestly.
type tape struct {
	mu   sync.Mutex
	rest []byte
}

// Kinds of responses. Further bytes of the tape are their parameters.
const (
	honestly = iota
	empty
	rawly
	headless
	falsely
	atLength
	slowly
	refusing
	inNumbers
	asAnother
	ways
)

func (t *tape) answer(q question) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	message := honest(q, 3)
	switch way := t.byte() % ways; {
	case way == empty:
		return nil, nil
	case way == rawly:
		return t.bytes(), nil
	case way == headless:
		header(message).Reset()
	case way == falsely:
		t.lie(message)
	case way == atLength:
		return append(marshal(message), marshal(&etcdserverpb.MemberListResponse{Members: []*etcdserverpb.Member{{Name: strings.Repeat("n", 256<<10)}}})...), nil
	case way == slowly && q.method != "HashKV": // the hash timeout is longer than the test
		<-q.ctx.Done()
		return nil, q.ctx.Err()
	case way == refusing:
		return nil, grpcstatus.Error(codes.Code(t.byte()%17), strings.ToValidUTF8(string(t.bytes()), "?"))
	case way == inNumbers:
		t.multiply(message)
	case way == asAnother:
		header(message).ClusterId, header(message).MemberId = uint64(t.byte()), uint64(t.byte())
	}
	return marshal(message), nil
}

func marshal(message proto.Message) []byte {
	encoded, err := proto.Marshal(message)
	if err != nil {
		return nil // a tape may contain invalid UTF-8
	}
	return encoded
}

func header(message proto.Message) *etcdserverpb.ResponseHeader {
	return message.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	}).GetHeader()
}

// lie falsifies a response with values from the tape.
func (t *tape) lie(message proto.Message) {
	switch m := message.(type) {
	case *etcdserverpb.StatusResponse:
		m.Leader, m.RaftTerm, m.IsLearner = uint64(t.byte()%5), uint64(t.byte()), t.byte()%2 == 1
		m.DbSize, m.DbSizeInUse, m.Header.Revision = t.int(), t.int(), t.int()
		m.RaftIndex, m.RaftAppliedIndex = uint64(t.int()), uint64(t.int())
		m.Version, m.StorageVersion, m.Errors = t.text(), t.text(), []string{t.text(), fmt.Sprintf("memberID:%d alarm:%d", t.byte(), t.byte())}
		m.DowngradeInfo = &etcdserverpb.DowngradeInfo{Enabled: t.byte()%2 == 1, TargetVersion: t.text()}
	case *etcdserverpb.MemberListResponse:
		m.Members = nil
		for range t.byte() % 80 {
			m.Members = append(m.Members, &etcdserverpb.Member{
				ID: uint64(t.byte()), Name: t.text(), PeerURLs: []string{t.text(), t.text()}, ClientURLs: []string{t.text()}, IsLearner: t.byte()%2 == 1,
			})
		}
	case *etcdserverpb.HashKVResponse:
		m.Hash, m.HashRevision, m.CompactRevision = uint32(t.byte()), t.int(), t.int()
	case *etcdserverpb.MemberAddResponse:
		m.Member.ID = uint64(t.byte())
	}
}

// multiply makes a response very long.
func (t *tape) multiply(message proto.Message) {
	n := 512 * int(t.byte())
	switch m := message.(type) {
	case *etcdserverpb.StatusResponse:
		for i := range n {
			m.Errors = append(m.Errors, fmt.Sprintf("memberID:%d alarm:NOSPACE", int(t.byte())+i))
		}
	case *etcdserverpb.MemberListResponse:
		m.Members = listed(n)
	}
}

func (t *tape) byte() byte {
	if len(t.rest) == 0 {
		return 0
	}
	next := t.rest[0]
	t.rest = t.rest[1:]
	return next
}

// bytes returns the next bytes of the tape. The first byte is the length.
func (t *tape) bytes() []byte {
	n := min(int(t.byte()), len(t.rest))
	next := t.rest[:n]
	t.rest = t.rest[n:]
	return next
}

func (t *tape) text() string { return strings.ToValidUTF8(string(t.bytes()), "?") }

func (t *tape) int() int64 {
	var next [8]byte
	for i := range next {
		next[i] = t.byte()
	}
	return int64(binary.BigEndian.Uint64(next[:]))
}
