package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TestAuthEnabled checks that AuthEnabled returns the correct state of authentication, or an error.
func TestAuthEnabled(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, newCA(t, "*."+name+"."+namespace+".svc"), 1)
		clients, ctx, cluster := newClients(t), t.Context(), s.cluster(1)
		cluster.TLS = s.tls.named("root")
		eventually(t, clients, cluster, "one responding member", allAnswer(1))
		for _, want := range []bool{false, true} {
			if want {
				s.enableAuth(ctx, s.asRoot(), &etcdserverpb.AuthUserAddRequest{Name: "root", Options: &authpb.UserAddOptions{NoPassword: true}})
			}
			if got, err := clients.AuthEnabled(ctx, cluster); err != nil || got != want {
				t.Errorf("authentication is enabled: %t, %v; want %t", got, err, want)
			}
		}
		// Passes, which connect as root, still work.
		eventually(t, clients, cluster, "one responding member", allAnswer(1))
		if got, err := clients.AuthEnabled(ctx, s.cluster(1)); err == nil && !got { // 3.7 returns it to everyone
			t.Error("a different user is told that authentication is disabled")
		}
	})
}

// asRoot returns credentials with the certificate of the user root.
func (s *servers) asRoot() credentials.TransportCredentials {
	s.t.Helper()
	as := s.tls.named("root")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(as.CA)
	pair, err := tls.X509KeyPair(as.Cert, as.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	return credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: pod(0) + "." + name + "." + namespace + ".svc", Certificates: []tls.Certificate{pair}})
}

// enableAuth creates the user root, with all permissions, and enables authentication, as etcdctl does.
func (s *servers) enableAuth(ctx context.Context, transport credentials.TransportCredentials, root *etcdserverpb.AuthUserAddRequest) {
	s.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.address(0, 2379), grpc.WithTransportCredentials(transport))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	auth := etcdserverpb.NewAuthClient(conn)
	if _, err = auth.UserAdd(ctx, root); err == nil {
		_, err = auth.RoleAdd(ctx, &etcdserverpb.AuthRoleAddRequest{Name: "root"})
	}
	if err == nil {
		_, err = auth.UserGrantRole(ctx, &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"})
	}
	if err == nil {
		_, err = auth.AuthEnable(ctx, &etcdserverpb.AuthEnableRequest{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
