package clusters

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"quorate.dev/quorate/clusters/etcd/etcdtest"
	"quorate.dev/quorate/clusters/objects"
)

// fakeEtcd is an etcd cluster as a pass sees it: servers on loopback addresses, one per pod, that share a member list.
type fakeEtcd struct {
	t      testing.TB
	subnet string

	mu      sync.Mutex
	members []*etcdserverpb.Member
	running map[int]*fakeMember // by ordinal
	// alarm, if set and not empty, is an alarm that all members report, as in etcd.
	alarm atomic.Pointer[string]
	// auth is whether authentication is enabled. If it is nil, members do not respond to requests for the
	// authentication status.
	auth *bool
	// clusterID is the cluster ID, or fakeClusterID if it is zero.
	clusterID uint64
	// leader is the ID of the leader, or 1 if it is zero.
	leader uint64
	// hashes makes members return hashes of their data.
	hashes bool
	// hashed is the number of requests for hashes.
	hashed atomic.Int32
}

// listedMember is a member in etcd's list.
type listedMember = etcdserverpb.Member

const fakeClusterID = 0xc1

func newFakeEtcd(t testing.TB, size int) *fakeEtcd {
	f := &fakeEtcd{t: t, subnet: etcdtest.Subnet(t), running: map[int]*fakeMember{}}
	for n := range size {
		f.members = append(f.members, &etcdserverpb.Member{ID: uint64(n + 1), Name: fmt.Sprint("a-", n), PeerURLs: []string{peerOf(n)}, ClientURLs: []string{"http://x"}})
		f.serve(n, uint64(n+1), f.address(n))
	}
	return f
}

func peerOf(ordinal int) string { return fmt.Sprintf("http://a-%d.a.default.svc:2380", ordinal) }

// address returns the address of the pod with the given ordinal.
func (f *fakeEtcd) address(ordinal int) string { return fmt.Sprintf("%s.%d", f.subnet, ordinal+1) }

// serve starts the member of a pod at an address.
func (f *fakeEtcd) serve(ordinal int, id uint64, address string) {
	f.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(objects.ClientPort)))
	if err != nil {
		f.t.Skipf("no loopback addresses to listen on: %v", err)
	}
	server := grpc.NewServer()
	member := &fakeMember{etcd: f, id: id, stop: server.Stop}
	etcdserverpb.RegisterClusterServer(server, member)
	etcdserverpb.RegisterMaintenanceServer(server, member)
	etcdserverpb.RegisterAuthServer(server, member)
	etcdserverpb.RegisterKVServer(server, member)
	go func() { _ = server.Serve(listener) }()
	f.t.Cleanup(server.Stop)
	f.running[ordinal] = member
}

// add adds a voter that has not started to etcd's list.
func (f *fakeEtcd) add(url string) {
	f.members = append(f.members, &etcdserverpb.Member{ID: 9, PeerURLs: []string{url}})
}

// join starts the learner that etcd lists in a slot and stops the member that runs in the slot's pod.
func (f *fakeEtcd) join(ordinal int) {
	f.running[ordinal].stop()
	f.mu.Lock()
	i := slices.IndexFunc(f.members, func(m *etcdserverpb.Member) bool { return m.PeerURLs[0] == peerOf(ordinal) })
	f.members[i].Name, f.members[i].ClientURLs = fmt.Sprint("a-", ordinal), []string{"http://x"}
	id := f.members[i].ID
	f.mu.Unlock()
	f.serve(ordinal, id, f.address(ordinal))
}

func (m *fakeMember) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: cmp.Or(m.etcd.clusterID, fakeClusterID), MemberId: m.id}
}

func (m *fakeMember) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	return &etcdserverpb.MemberListResponse{Header: m.header(), Members: slices.Clone(f.members)}, nil
}

func (m *fakeMember) MemberRemove(_ context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = slices.DeleteFunc(f.members, func(e *etcdserverpb.Member) bool { return e.ID == r.ID })
	return &etcdserverpb.MemberRemoveResponse{Header: m.header(), Members: f.members}, nil
}

func (m *fakeMember) MemberAdd(_ context.Context, r *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	added := &etcdserverpb.Member{ID: 100 + uint64(len(f.members)), PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
	f.members = append(f.members, added)
	return &etcdserverpb.MemberAddResponse{Header: m.header(), Member: added, Members: f.members}, nil
}

func (m *fakeMember) MemberPromote(_ context.Context, r *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.members {
		e.IsLearner = e.IsLearner && e.ID != r.ID
	}
	return &etcdserverpb.MemberPromoteResponse{Header: m.header(), Members: f.members}, nil
}

// fakeMember is the member that runs in one pod.
type fakeMember struct {
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedKVServer
	etcd *fakeEtcd
	id   uint64
	stop func()
	// hangs makes Status block until the request is canceled.
	hangs atomic.Bool
	// takes is the response time of Status, in nanoseconds.
	takes atomic.Int64
	// defragmented is the number of defragmentation requests. defragment, if set, is called for each request.
	defragmented atomic.Int32
	defragment   func(context.Context) error
	// readsHang makes reads block until the request is canceled, as during a defragmentation.
	readsHang atomic.Bool
}

func (m *fakeMember) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if m.readsHang.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &etcdserverpb.RangeResponse{Header: m.header()}, nil
}

func (m *fakeMember) Defragment(ctx context.Context, _ *etcdserverpb.DefragmentRequest) (*etcdserverpb.DefragmentResponse, error) {
	if m.defragmented.Add(1); m.defragment != nil {
		return &etcdserverpb.DefragmentResponse{}, m.defragment(ctx)
	}
	return &etcdserverpb.DefragmentResponse{}, nil
}

func (m *fakeMember) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	if m.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if takes := m.takes.Load(); takes > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(takes)):
		}
	}
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	header := m.header()
	header.Revision = 7
	learner := slices.ContainsFunc(f.members, func(e *etcdserverpb.Member) bool { return e.ID == m.id && e.IsLearner })
	status := &etcdserverpb.StatusResponse{Header: header, Leader: cmp.Or(f.leader, 1), RaftTerm: 2, RaftIndex: 9, RaftAppliedIndex: 9, Version: "3.6.16", IsLearner: learner}
	if alarm := f.alarm.Load(); alarm != nil && *alarm != "" {
		status.Errors = []string{*alarm}
	}
	return status, nil
}

func (m *fakeMember) HashKV(ctx context.Context, r *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	if m.etcd.hashed.Add(1); !m.etcd.hashes {
		return m.UnimplementedMaintenanceServer.HashKV(ctx, r)
	}
	return &etcdserverpb.HashKVResponse{Header: m.header(), Hash: 5, HashRevision: r.Revision, CompactRevision: 1}, nil
}

func (m *fakeMember) AuthStatus(ctx context.Context, r *etcdserverpb.AuthStatusRequest) (*etcdserverpb.AuthStatusResponse, error) {
	f := m.etcd
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.auth == nil {
		return m.UnimplementedAuthServer.AuthStatus(ctx, r)
	}
	return &etcdserverpb.AuthStatusResponse{Header: m.header(), Enabled: *f.auth}, nil
}
