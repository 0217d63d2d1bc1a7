package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// A pod is untrusted until it has responded like etcd, so the size of responses is limited. The limits are far above
// the size of any response from a cluster that Quorate created. A response that exceeds a limit is not accepted as
// etcd's.
const (
	maxAnswer  = 256 << 10 // bytes of one response
	maxHeaders = 64 << 10  // bytes of its headers and trailers, which contain errors
	maxMembers = 64
	maxURLs    = 16   // peer URLs of one member
	maxAlarms  = 1024 // in one response, and for all members together
)

// Limits, in bytes, for the parts of a response that are shown in reports and in the status. Quorate's own pod names
// and peer URLs are shorter.
const (
	longestWord   = 256 // a name, a URL or a version
	longestReason = 512
	longestList   = 1024 // all differences in one member's view
)

const advice = "check that the pod is running etcd"

// noAnswer is the error for a response that cannot have come from etcd.
type noAnswer struct{ error }

func (e noAnswer) Unwrap() error { return e.error }

var (
	// errHeadless is the error of a response that does not identify its member. etcd always identifies itself.
	errHeadless = errors.New("its response does not identify its member")
	// errAnother is the error of a response from a different member than before. Each request goes to one pod, and the
	// pod's member does not change between two requests.
	errAnother = errors.New("its response identifies a different member")
	errLong    = fmt.Errorf("its response is longer than %d KiB; %s", maxAnswer>>10, advice)
)

// checked is a gRPC interceptor that sends a request and returns a noAnswer if the response cannot be etcd's.
func checked(
	ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, ask grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	err := ask(ctx, method, question, answer, conn, options...)
	if said := status.Convert(err); said.Code() == codes.ResourceExhausted &&
		strings.Contains(said.Message(), "larger than max") {
		return noAnswer{errLong}
	}
	if err != nil {
		return err
	}
	if err := check(answer); err != nil {
		return noAnswer{err}
	}
	return nil
}

// check returns an error if a response is invalid, and makes the response's text safe to display.
func check(answer any) error {
	switch a := answer.(type) {
	case *etcdserverpb.MoveLeaderResponse, *etcdserverpb.DefragmentResponse:
		return nil // etcd leaves it empty
	case *etcdserverpb.StatusResponse:
		return checkStatus(a)
	case *etcdserverpb.MemberListResponse:
		return checkList(a)
	case *etcdserverpb.MemberAddResponse:
		if a.Member == nil || a.Member.ID == 0 {
			return errHeadless
		}
	}
	headed, is := answer.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	})
	if !is || !says(headed.GetHeader()) {
		return errHeadless
	}
	return nil
}

// says reports whether a header identifies the responding member and cluster.
func says(header *etcdserverpb.ResponseHeader) bool {
	return header != nil && header.ClusterId != 0 && header.MemberId != 0
}

func checkStatus(s *etcdserverpb.StatusResponse) error {
	if !says(s.Header) {
		return errHeadless
	}
	if len(s.Errors) > maxAlarms {
		return fmt.Errorf("it reports %d alarms, more than the limit of %d; disarm them with etcdctl, or %s",
			len(s.Errors), maxAlarms, advice)
	}
	s.Header.Revision, s.DbSize, s.DbSizeInUse = max(0, s.Header.Revision), max(0, s.DbSize), max(0, s.DbSizeInUse)
	s.Version, s.StorageVersion = readable(s.Version, longestWord), readable(s.StorageVersion, longestWord)
	if s.DowngradeInfo != nil {
		s.DowngradeInfo.TargetVersion = readable(s.DowngradeInfo.TargetVersion, longestWord)
	}
	return nil
}

func checkList(list *etcdserverpb.MemberListResponse) error {
	switch {
	case !says(list.Header):
		return errHeadless
	case len(list.Members) == 0:
		return fmt.Errorf("it does not list any members; %s", advice)
	case len(list.Members) > maxMembers:
		return fmt.Errorf("it lists %d members, more than the limit of %d; remove some with etcdctl, or %s",
			len(list.Members), maxMembers, advice)
	}
	seen := map[uint64]bool{}
	for _, entry := range list.Members {
		switch {
		case entry == nil || entry.ID == 0:
			return fmt.Errorf("it lists a member without an ID; %s", advice)
		case len(entry.PeerURLs) > maxURLs:
			return fmt.Errorf("it lists %d peer URLs of member %s, more than the limit of %d; %s",
				len(entry.PeerURLs), decide.ID(entry.ID), maxURLs, advice)
		case seen[entry.ID]:
			return fmt.Errorf("it lists member %s twice; %s", decide.ID(entry.ID), advice)
		}
		seen[entry.ID] = true
		entry.Name = readable(entry.Name, longestWord)
		for i, peer := range entry.PeerURLs {
			if strings.ContainsAny(peer, ",= \t\r\n") { // they separate the members in initial-cluster
				return fmt.Errorf("it lists the peer URL %q, which is not valid; %s", readable(peer, longestWord),
					advice)
			}
			entry.PeerURLs[i] = readable(peer, longestWord)
		}
	}
	return nil
}

// readable makes untrusted text safe to display. It escapes characters that a terminal would interpret or hide. It
// truncates text longer than most bytes and adds an ellipsis, so that the result never equals a shorter text.
func readable(text string, most int) string {
	shown := printable.Text(text[:min(len(text), most)])
	if len(text) <= most && len(shown) <= most {
		return shown
	}
	return strings.ToValidUTF8(shown[:min(len(shown), most-len("…"))], "") + "…"
}
