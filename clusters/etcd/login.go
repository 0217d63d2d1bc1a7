package etcd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Login is an etcd user and its password. Members of clusters that Quorate created authenticate clients by certificate
// instead.
type Login struct{ User, Password string }

// options returns dial options that log in before the first request and before each stream, and when a token expires.
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
			return s.hidden(err)
		}
	}
}

func (s *session) stream(
	ctx context.Context, of *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	with, err := s.with(ctx, conn, true) // an expired token would not be reported until the stream is read
	if err != nil {
		return nil, err
	}
	opened, err := open(with, of, conn, method, options...)
	if err != nil {
		return nil, s.hidden(err)
	}
	return hidingStream{opened, s}, nil
}

// hidingStream hides the password in the errors of a stream.
type hidingStream struct {
	grpc.ClientStream
	session *session
}

// RecvMsg implements grpc.ClientStream.
func (h hidingStream) RecvMsg(m any) error { return h.session.hidden(h.ClientStream.RecvMsg(m)) }

// hidden returns err without the password, because a malicious server may repeat the password in an error, even quoted.
// etcd's own errors are returned unchanged.
func (s *session) hidden(err error) error {
	said, is := status.FromError(err)
	if known := (rpctypes.EtcdError{}); errors.As(rpctypes.Error(err), &known) || !is || s.login.Password == "" {
		return err
	}
	quoted := strconv.Quote(s.login.Password)
	text := strings.NewReplacer(s.login.Password, "…", quoted[1:len(quoted)-1], "…").Replace(said.Message())
	switch {
	case decodesTo(text, s.login.Password, maxQuotes):
		text = "an error that is not shown because it contains the password"
	case text == said.Message():
		return err
	}
	return status.Error(said.Code(), text)
}

// quotedText matches a quoted part of a text. maxQuotes is how often a part may be quoted; more is treated as secret.
var quotedText = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)

const maxQuotes = 3

// decodesTo reports whether a quoted part of the text contains the secret once it is unquoted, up to depth times.
func decodesTo(text, secret string, depth int) bool {
	return slices.ContainsFunc(quotedText.FindAllString(text, -1), func(quoted string) bool {
		inner, err := strconv.Unquote(quoted)
		return err == nil && (depth == 0 || strings.Contains(inner, secret) || decodesTo(inner, secret, depth-1))
	})
}

// loginTimeout is the timeout of a login, which includes hashing the password and a write by a quorum.
const loginTimeout = 10 * time.Second

// with returns ctx with a token. It first logs in if there is no token yet or renew is set.
func (s *session) with(ctx context.Context, conn *grpc.ClientConn, renew bool) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || renew {
		within, cancel := context.WithTimeout(ctx, loginTimeout)
		defer cancel()
		answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(within,
			&etcdserverpb.AuthenticateRequest{Name: s.login.User, Password: s.login.Password})
		if err != nil {
			return nil, fmt.Errorf("log in: %w", s.hidden(err))
		}
		s.token = answer.Token
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, s.token), nil
}

// isExpired reports whether err means that the member no longer accepts the token. Some requests to etcd 3.5 return the
// message without its code.
func isExpired(err error) bool {
	said := status.Convert(err)
	return said.Code() == codes.Unauthenticated ||
		said.Code() == codes.Unknown && strings.Contains(said.Message(), "invalid auth token")
}
