package etcd

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/status"

	"quorate.dev/quorate/reconcile/decide"
)

// why returns a short explanation of why no pod listed the members, such as "a-0: connection refused; a-1, a-2: no
// leader".
func why(replies []reply) string {
	if len(replies) == 0 {
		return "no pod is running"
	}
	byPod := slices.SortedFunc(slices.Values(replies), func(a, b reply) int { return strings.Compare(a.pod, b.pod) })
	pods := map[string][]string{}
	var reasons []string
	for _, r := range byPod {
		reason := r.why()
		if pods[reason] == nil {
			reasons = append(reasons, reason)
		}
		pods[reason] = append(pods[reason], r.pod)
	}
	for i, reason := range reasons {
		reasons[i] = strings.Join(pods[reason], ", ") + ": " + reason
	}
	return strings.Join(reasons, "; ")
}

// why returns why the pod did not respond or could not list the members.
func (r reply) why() string {
	switch {
	case r.err != nil:
		return reason(r.err)
	case !r.knowsLeader():
		return "no leader"
	case r.status.IsLearner:
		return "a learner" // alive, but it cannot list members
	default:
		return "led by " + decide.ID(r.status.Leader).String()
	}
}

// cause returns why the request's context ended, or err if the context is still active.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// plain returns the operating system's error, if err wraps one, without the addresses around it.
func plain(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// wrapping matches the prefixes that gRPC, etcd and the network add to a cause.
var wrapping = regexp.MustCompile(
	`^(.*: )?(Error while dialing|authentication handshake failed|error reading server preface|` +
		`error reading from server|etcdserver|(read|write) tcp \S+: (read|write)): `)

// reason returns the cause of err, without the prefixes and suffixes that gRPC, etcd and the network add to it.
func reason(err error) string {
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	if _, quoted, found := strings.Cut(text, "desc = "); found {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			text = unquoted
		}
	}
	text = wrapping.ReplaceAllString(text, "")
	text, _, _ = strings.Cut(text, " (possibly because of") // the CA's name and more
	switch text {
	case io.EOF.Error():
		return "it closed the connection"
	case "":
		return "it rejected the request without a reason"
	}
	return readable(text, longestReason)
}

// shortError is an error whose message is only the reason.
type shortError struct{ error }

func (e shortError) Error() string { return reason(e.error) }

func (e shortError) Unwrap() error { return e.error }
