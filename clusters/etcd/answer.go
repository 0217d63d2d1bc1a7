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

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// Nobody knows what runs in a pod before it has answered like etcd. So there are bounds to what is
// taken for an answer, far above what etcd says of a cluster that Quorate has made. What is beyond
// one is no answer.
const (
	maxAnswer  = 256 << 10 // bytes of one answer
	maxHeaders = 64 << 10  // bytes of its headers and trailers, in which errors are told
	maxMembers = 64
	maxAlarms  = 1024 // of one answer, and of all members together
)

// Bounds in bytes of what of an answer gets into reports and into status. No name of a pod and no
// peer URL that Quorate makes is as long.
const (
	longestWord   = 256 // a name, a URL or a version
	longestReason = 512
	longestList   = 1024 // all that one member believes otherwise
)

const advice = "see whether it is etcd that runs in the pod"

// noAnswer is the error of an answer that came and cannot be etcd's.
type noAnswer struct{ error }

func (e noAnswer) Unwrap() error { return e.error }

var (
	// errHeadless: etcd always says who it is; what answers without is not etcd.
	errHeadless = errors.New("its answer does not say whose it is")
	// errAnother: a question goes to one pod, in which the member does not change between two
	// questions.
	errAnother = errors.New("it does not answer as itself")
	errLong    = fmt.Errorf("its answer is longer than %d KiB; %s", maxAnswer>>10, advice)
)

// checked asks as gRPC does, and returns a noAnswer for what cannot be etcd's answer.
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

// check says what is wrong with an answer, and makes its words readable.
func check(answer any) error {
	switch a := answer.(type) {
	case *etcdserverpb.MoveLeaderResponse:
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

// says reports whether a header says whose it is: of which member of which cluster.
func says(header *etcdserverpb.ResponseHeader) bool {
	return header != nil && header.ClusterId != 0 && header.MemberId != 0
}

func checkStatus(s *etcdserverpb.StatusResponse) error {
	if !says(s.Header) {
		return errHeadless
	}
	if len(s.Errors) > maxAlarms {
		return fmt.Errorf("it tells of %d alarms, more than the %d that are read; disarm them with etcdctl, or %s",
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
		return fmt.Errorf("it lists no members; %s", advice)
	case len(list.Members) > maxMembers:
		return fmt.Errorf("it lists %d members, more than the %d that are read; remove some with etcdctl, or %s",
			len(list.Members), maxMembers, advice)
	}
	seen := map[uint64]bool{}
	for _, entry := range list.Members {
		switch {
		case entry == nil || entry.ID == 0:
			return fmt.Errorf("it lists a member without an ID; %s", advice)
		case seen[entry.ID]:
			return fmt.Errorf("it lists member %s twice; %s", decide.ID(entry.ID), advice)
		}
		seen[entry.ID] = true
		entry.Name = readable(entry.Name, longestWord)
		for i, peer := range entry.PeerURLs {
			entry.PeerURLs[i] = readable(peer, longestWord)
		}
	}
	return nil
}

// readable is a text of a stranger as it can be shown: what a terminal would obey, or not show, is
// written out, and what is longer than so many bytes ends in an ellipsis, so that it is equal to no
// shorter one.
func readable(text string, most int) string {
	shown := visible.Text(text[:min(len(text), most)])
	if len(text) <= most && len(shown) <= most {
		return shown
	}
	return strings.ToValidUTF8(shown[:min(len(shown), most-len("…"))], "") + "…"
}
