package etcd_test

import (
	"context"
	"net"
	"path"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/etcd"
)

// strangers are untrusted servers, one for each pod, with configurable responses.
type strangers struct {
	addresses map[string]string
	answer    atomic.Pointer[func(question) ([]byte, error)]
	// snapshot sends the response to the method Snapshot.
	snapshot func(q question, send func(*etcdserverpb.SnapshotResponse) error) error
}

// question is a request to one pod, with the pod's ordinal and the name of etcd's method.
type question struct {
	ctx     context.Context
	ordinal int
	method  string
}

// strangerClusterID and strangerRevision are the values that strangers return unless they lie.
const (
	strangerClusterID = 0xc1
	strangerRevision  = 7
)

func newStrangers(t testing.TB, n int) *strangers {
	s := &strangers{addresses: map[string]string{}}
	for i := range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.addresses[pod(i)] = listener.Addr().String()
		handle := func(_ any, stream grpc.ServerStream) error {
			var asked []byte
			if err := stream.RecvMsg(&asked); err != nil {
				return err
			}
			method, _ := grpc.MethodFromServerStream(stream)
			if s.snapshot != nil && path.Base(method) == "Snapshot" {
				return s.snapshot(question{stream.Context(), i, "Snapshot"}, func(part *etcdserverpb.SnapshotResponse) error {
					message, err := proto.Marshal(part)
					if err != nil {
						return err
					}
					return stream.SendMsg(&message)
				})
			}
			answer, err := (*s.answer.Load())(question{stream.Context(), i, path.Base(method)})
			if err != nil {
				return err
			}
			return stream.SendMsg(&answer)
		}
		server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(handle))
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
	}
	return s
}

// cluster returns an etcd.Cluster whose members are the servers.
func (s *strangers) cluster() etcd.Cluster {
	c := etcd.Cluster{Namespace: namespace, Name: name, Dial: func(ctx context.Context, pod string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.addresses[pod])
	}}
	for i := range len(s.addresses) {
		c.Pods = append(c.Pods, etcd.Pod{Name: pod(i)})
	}
	return c
}

// say sets the response function. If it returns nil, the response is honest.
func (s *strangers) say(answer func(question) proto.Message) {
	raw := func(q question) ([]byte, error) {
		message := answer(q)
		if message == nil {
			message = honest(q, len(s.addresses))
		}
		return proto.Marshal(message)
	}
	s.answer.Store(&raw)
}

// honest returns the response of a member of a healthy cluster of the given size, led by its first member.
func honest(q question, size int) proto.Message {
	header := &etcdserverpb.ResponseHeader{ClusterId: strangerClusterID, MemberId: uint64(q.ordinal + 1), Revision: strangerRevision, RaftTerm: 2}
	switch q.method {
	case "Status":
		return &etcdserverpb.StatusResponse{
			Header: header, Leader: 1, RaftTerm: 2, RaftIndex: 9, RaftAppliedIndex: 9, Version: "3.6.16", StorageVersion: "3.6.0", DbSize: 8, DbSizeInUse: 4,
		}
	case "MemberList":
		return &etcdserverpb.MemberListResponse{Header: header, Members: listed(size)}
	case "HashKV":
		return &etcdserverpb.HashKVResponse{Header: header, Hash: 5, HashRevision: strangerRevision, CompactRevision: 1}
	case "MemberAdd":
		return &etcdserverpb.MemberAddResponse{Header: header, Member: &etcdserverpb.Member{ID: 99}}
	default: // only the header of these responses matters
		return &etcdserverpb.MemberRemoveResponse{Header: header}
	}
}

func listed(size int) []*etcdserverpb.Member {
	var members []*etcdserverpb.Member
	for i := range size {
		members = append(members, &etcdserverpb.Member{
			ID: uint64(i + 1), Name: pod(i), PeerURLs: []string{"http://" + pod(i) + ":2380"}, ClientURLs: []string{"http://x"},
		})
	}
	return members
}
