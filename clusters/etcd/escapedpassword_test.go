package etcd_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"quorate.dev/quorate/clusters/etcd"
)

// hexEcho repeats the password in an error.
type hexEcho struct {
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedMaintenanceServer
	say func(string) string
}

func (e hexEcho) Authenticate(_ context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	return nil, grpcstatus.Error(codes.InvalidArgument, e.say(r.Password))
}

// TestEscapedPasswordIsHidden checks that a password in an error is hidden even if the member escapes it.
func TestEscapedPasswordIsHidden(t *testing.T) {
	for what, say := range map[string]func(string) string{
		"hex": func(p string) string {
			var b strings.Builder
			for _, c := range []byte(p) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
			return `"` + b.String() + `"`
		},
		"quoted twice": func(p string) string { return fmt.Sprintf("%q", fmt.Sprintf("%q", p)) },
	} {
		listener, _ := net.Listen("tcp", "127.0.0.1:0")
		server := grpc.NewServer()
		etcdserverpb.RegisterAuthServer(server, hexEcho{say: say})
		etcdserverpb.RegisterMaintenanceServer(server, hexEcho{})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		for _, pass := range []string{"hunter2", `se"cret`} {
			cluster := etcd.Cluster{
				Namespace: "ns", Name: "a" + pass + what, Pods: []etcd.Pod{{Name: "a-0", IP: listener.Addr().String()}}, Voters: []string{"a-0"},
				Login: &etcd.Login{User: "root", Password: pass},
				Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
				},
			}
			_, err := newClients(t).Snapshot(t.Context(), cluster)
			if strings.Contains(err.Error(), pass) || strings.Contains(err.Error(), "cret") {
				t.Errorf("%s, %s: %v", what, pass, err)
			}
		}
	}
}
