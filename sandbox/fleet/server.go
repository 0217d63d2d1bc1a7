package fleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// databaseSize is the size of every member's database, in bytes.
const databaseSize = 64 << 10

// service responds as the member that the client selects in the TLS handshake (SNI).
type service struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedAuthServer
	*etcd
}

// server returns a server for all members.
func (e *etcd) server() *grpc.Server {
	config := &tls.Config{GetConfigForClient: e.configFor, MinVersion: tls.VersionTLS12}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	all := service{etcd: e}
	pb.RegisterClusterServer(s, all)
	pb.RegisterMaintenanceServer(s, all)
	pb.RegisterAuthServer(s, all)
	return s
}

func (e *etcd) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.hosts[hello.ServerName]; p != nil {
		return p.tls, nil
	}
	return nil, fmt.Errorf("no member is running as %q", hello.ServerName)
}

// as calls do with the selected member. If agreed is set, it requires a leader, as etcd does for requests that need
// consensus.
func (s service) as(
	ctx context.Context, agreed bool, do func(*process, *pb.ResponseHeader) error,
) error {
	from, _ := peer.FromContext(ctx)
	info, secured := from.AuthInfo.(credentials.TLSInfo)
	if !secured {
		return status.Error(codes.Unauthenticated, "without TLS, the requested member is unknown")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.hosts[info.State.ServerName]
	if p == nil {
		return status.Error(codes.Unavailable, "the member has stopped")
	}
	if agreed && p.cluster.leader() == 0 {
		return rpctypes.ErrGRPCNoLeader
	}
	const term = 2
	return do(p, &pb.ResponseHeader{ClusterId: p.cluster.id, MemberId: p.id, Revision: p.cluster.revision,
		RaftTerm: term})
}

func (s service) Status(
	ctx context.Context, _ *pb.StatusRequest,
) (answer *pb.StatusResponse, err error) {
	err = s.as(ctx, false, func(p *process, h *pb.ResponseHeader) error {
		minor := p.version[:max(0, strings.LastIndex(p.version, "."))]
		isLearner := func(m *pb.Member) bool { return m.ID == p.id && m.IsLearner }
		answer = &pb.StatusResponse{
			Header: h, Version: p.version, StorageVersion: minor + ".0",
			DbSize: databaseSize, DbSizeInUse: databaseSize, Leader: p.cluster.leader(),
			RaftIndex: 9, RaftAppliedIndex: 9, RaftTerm: h.RaftTerm,
			IsLearner: slices.ContainsFunc(p.cluster.members, isLearner),
		}
		return nil
	})
	return answer, err
}

func (s service) MemberList(
	ctx context.Context, r *pb.MemberListRequest,
) (answer *pb.MemberListResponse, err error) {
	err = s.as(ctx, r.Linearizable, func(p *process, h *pb.ResponseHeader) error {
		answer = &pb.MemberListResponse{Header: h, Members: p.cluster.list()}
		return nil
	})
	return answer, err
}

func (s service) MemberAdd(
	ctx context.Context, r *pb.MemberAddRequest,
) (answer *pb.MemberAddResponse, err error) {
	err = s.as(ctx, true, func(p *process, h *pb.ResponseHeader) error {
		c := p.cluster
		c.revision++
		id := hash(fmt.Sprint(c.revision), r.PeerURLs[0])
		added := &pb.Member{ID: id, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
		c.members = append(c.members, added)
		answer = &pb.MemberAddResponse{Header: h, Member: added, Members: c.list()}
		return nil
	})
	return answer, err
}

func (s service) MemberRemove(
	ctx context.Context, r *pb.MemberRemoveRequest,
) (answer *pb.MemberRemoveResponse, err error) {
	err = s.as(ctx, true, func(p *process, h *pb.ResponseHeader) error {
		c := p.cluster
		before := len(c.members)
		c.members = slices.DeleteFunc(c.members, func(m *pb.Member) bool { return m.ID == r.ID })
		if len(c.members) == before {
			return rpctypes.ErrGRPCMemberNotFound
		}
		answer = &pb.MemberRemoveResponse{Header: h, Members: c.list()}
		return nil
	})
	return answer, err
}

func (s service) MemberPromote(
	ctx context.Context, r *pb.MemberPromoteRequest,
) (answer *pb.MemberPromoteResponse, err error) {
	err = s.as(ctx, true, func(p *process, h *pb.ResponseHeader) error {
		for _, m := range p.cluster.members {
			switch {
			case m.ID != r.ID:
				continue
			case !m.IsLearner:
				return rpctypes.ErrGRPCMemberNotLearner
			case !p.cluster.ready[m.ID]:
				return rpctypes.ErrGRPCLearnerNotReady
			}
			m.IsLearner = false
			answer = &pb.MemberPromoteResponse{Header: h, Members: p.cluster.list()}
			return nil
		}
		return rpctypes.ErrGRPCMemberNotFound
	})
	return answer, err
}

func (s service) AuthStatus(
	ctx context.Context, _ *pb.AuthStatusRequest,
) (answer *pb.AuthStatusResponse, err error) {
	err = s.as(ctx, true, func(_ *process, h *pb.ResponseHeader) error {
		answer = &pb.AuthStatusResponse{Header: h}
		return nil
	})
	return answer, err
}

// list returns the current members.
func (c *cluster) list() []*pb.Member {
	var all []*pb.Member
	for _, m := range c.members {
		all = append(all, &pb.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
			IsLearner: m.IsLearner})
	}
	return all
}
