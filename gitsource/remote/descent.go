package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"quorate.dev/quorate/gitsource/history"
)

// Descends reports whether the commit newer descends from the commit older, or is that commit. It requests increasingly
// more history until the answer is known. If the server supports filters, it requests only commits. If the ancestry
// cannot be determined within the limits, it returns an error.
func (s *Session) Descends(ctx context.Context, newer, older plumbing.Hash) (bool, error) {
	if newer == older {
		return true, nil
	}
	const all = 0
	var err error
	for _, depth := range []int{50, 500, 5000, all} {
		var descends bool
		if descends, err = s.descends(ctx, newer, older, depth); err == nil {
			return descends, nil
		}
		if !errors.Is(err, history.ErrCutOff) {
			break
		}
	}
	// This is git's response to a request for an unreachable commit if the server otherwise serves commits by hash.
	if strings.Contains(err.Error(), "not our ref "+newer.String()) {
		err = fmt.Errorf("%w: %w", history.ErrGone, err)
	}
	return false, fmt.Errorf("determine whether %s descends from %s: %w", newer, older, err)
}

func (s *Session) descends(ctx context.Context, newer, older plumbing.Hash, depth int) (bool, error) {
	request := s.request(newer, depth)
	s.filter(request, packp.FilterTreeDepth(0))
	store, shallow, err := s.fetchPack(ctx, request)
	if err != nil {
		return false, err
	}
	defer store.Close()
	return history.Descends(ctx, store, shallow, newer, older, s.limits().Pack.Objects)
}
