package etcd

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Login is a user of etcd with a password. Members of a cluster that Quorate created authenticate clients by their
// certificates instead.
type Login struct{ User, Password string }

// options returns options that log in before the first request on a connection, and again if the token has expired.
func (l *Login) options() []grpc.DialOption {
	if l == nil {
		return nil
	}
	s := &session{login: *l}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.unary), grpc.WithChainStreamInterceptor(s.stream)}
}

// session holds the token for the requests on one connection.
type session struct {
	login Login
	mu    sync.Mutex
	token string
}

func (s *session) unary(
	ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, ask grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	if method == etcdserverpb.Auth_Authenticate_FullMethodName {
		return ask(ctx, method, question, answer, conn, options...)
	}
	for renew := false; ; renew = true {
		with, err := s.with(ctx, conn, renew)
		if err != nil {
			return err
		}
		if err = ask(with, method, question, answer, conn, options...); renew || !isExpired(err) {
			return err
		}
	}
}

func (s *session) stream(
	ctx context.Context, of *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	with, err := s.with(ctx, conn, true) // an expired token would be reported only when the stream is read
	if err != nil {
		return nil, err
	}
	return open(with, of, conn, method, options...)
}

// with returns the context of a request with a token, and logs in if there is no token or a new one is needed.
func (s *session) with(ctx context.Context, conn *grpc.ClientConn, renew bool) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || renew {
		answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx,
			&etcdserverpb.AuthenticateRequest{Name: s.login.User, Password: s.login.Password})
		if err != nil {
			return nil, fmt.Errorf("log in as %s: %w", s.login.User, err)
		}
		s.token = answer.Token
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, s.token), nil
}

// isExpired reports whether a member no longer accepts the token.
func isExpired(err error) bool { return status.Code(err) == codes.Unauthenticated }
