package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
)

// readAt is both a source that was read at a revision but declares nothing, and a live side without clusters.
type readAt string

func (revision readAt) Fetch(context.Context, func(reconcile.Desired)) reconcile.Desired {
	d := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "source", Revision: string(revision)}}}
	d.Summarize()
	return d
}

func (readAt) Follow(context.Context, time.Duration, func(reconcile.Desired)) {}

func (readAt) Observe(_ context.Context, d reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	return reconcile.Observed{Desired: d}, nil
}

func (readAt) Changes(context.Context) reconcile.Changes { return nil }

func (readAt) Close(context.Context) error { return nil }

// TestPlanApprovalRequiresCommit checks that a plan of files without a revision cannot be approved, even if its digest
// matches, because the files may have changed since they were reviewed.
func TestPlanApprovalRequiresCommit(t *testing.T) {
	f := approveFlag{plan: "sha256:" + strings.Repeat("0", 64)}
	for revision, refused := range map[readAt]bool{"directory": true, "directory@sha1:abc": false} {
		r := &reconcile.Reconciler{Source: revision, Live: revision, Log: slog.New(slog.DiscardHandler)}
		err := f.keepTo(t.Context(), []*target{{r: r, open: func() error { return nil }}})
		var usage usageError
		if is := errors.As(err, &usage); is != refused || refused == (r.Approval != nil) {
			t.Errorf("%s: %v", revision, err)
		}
	}
}
