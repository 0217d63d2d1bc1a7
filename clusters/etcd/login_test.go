package etcd_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"quorate.dev/quorate/clusters/etcd"
)

// TestLoginWithPassword checks that a user with a password can take and prove a snapshot, even after a restarted member
// has lost the user's token.
func TestLoginWithPassword(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		eventually(t, newClients(t), s.cluster(1), "one responding member", allAnswer(1))
		s.enableAuth(t.Context(), insecure.NewCredentials(), &etcdserverpb.AuthUserAddRequest{Name: "root", Password: "secret"})
		as := func(password string) etcd.Cluster {
			c := s.cluster(1)
			c.Login = &etcd.Login{User: "root", Password: password}
			return c
		}
		for what, cluster := range map[string]etcd.Cluster{"without a user": s.cluster(1), "with a wrong password": as("wrong")} {
			if received, err := newClients(t).Snapshot(t.Context(), cluster); err == nil {
				_, err = io.Copy(io.Discard, received.Body)
				if received.Body.Close(); err == nil {
					t.Errorf("a snapshot is sent %s", what)
				}
			}
		}
		clients := newClients(t)
		for range 2 {
			received, err := clients.Snapshot(t.Context(), as("secret"))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, received.Body); err != nil || n == 0 {
				t.Errorf("%d bytes are sent: %v", n, err)
			}
			received.Body.Close()
			s.kill(pod(0))
			s.startIn(0, s.dirs[pod(0)])
			eventually(t, clients, as("secret"), "one responding member", allAnswer(1))
		}
	})
}

const password = `se"cret`

// echo is an etcd that repeats the password in its errors.
type echo struct {
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedMaintenanceServer
	fails bool // the login
}

func (e echo) Authenticate(_ context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	if e.fails {
		return nil, grpcstatus.Error(codes.InvalidArgument, "the password "+r.Password+" is wrong")
	}
	return &etcdserverpb.AuthenticateResponse{Token: "t", Header: &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1}}, nil
}

func (echo) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return nil, grpcstatus.Error(codes.Unavailable, fmt.Sprintf("%q, %s", password, password))
}

// TestEchoedPasswordIsHidden checks that errors do not contain the password even if the server repeats it.
func TestEchoedPasswordIsHidden(t *testing.T) {
	t.Parallel()
	for fails, want := range map[bool]string{true: "the password … is wrong", false: `"…", …`} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		etcdserverpb.RegisterAuthServer(server, echo{fails: fails})
		etcdserverpb.RegisterMaintenanceServer(server, echo{})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		cluster := etcd.Cluster{
			Namespace: "ns", Name: "a", Pods: []etcd.Pod{{Name: "a-0", IP: listener.Addr().String()}}, Voters: []string{"a-0"},
			Login: &etcd.Login{User: "root", Password: password},
			Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
			},
		}
		if _, err = newClients(t).Snapshot(t.Context(), cluster); err == nil || strings.Contains(err.Error(), "cre") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestHostOfMemberIsVerified checks that the certificate of a member that Quorate did not create must contain the given
// host.
func TestHostOfMemberIsVerified(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, newCA(t, "etcd.example.com"), 1)
		for host, verified := range map[string]bool{"etcd.example.com": true, "": false, "other.example.com": false} {
			cluster := s.cluster(1)
			cluster.Pods[0].Host = host
			if verified {
				eventually(t, newClients(t), cluster, "one responding member", allAnswer(1))
				continue
			}
			if _, err := newClients(t).ClusterID(t.Context(), cluster); err == nil {
				t.Errorf("the certificate is accepted for %q", host)
			}
		}
	})
}

// TestMemberBehindTwoAddressesCountsOnce checks that a member that is named twice does not outvote a member that does not
// respond.
func TestMemberBehindTwoAddressesCountsOnce(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 1)
		eventually(t, newClients(t), s.cluster(1), "one responding member", allAnswer(1))
		cluster := s.cluster(3)
		cluster.Voters = []string{pod(0), pod(1), pod(2)}
		cluster.Dial = func(ctx context.Context, to string) (net.Conn, error) {
			if to == pod(1) {
				to = pod(0)
			}
			return s.dial(ctx, to)
		}
		if id, err := newClients(t).ClusterID(t.Context(), cluster); err == nil {
			t.Errorf("two of three voters confirm cluster %s", id)
		}
	})
}
