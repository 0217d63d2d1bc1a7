package clusters

import (
	"context"
	"errors"
	"time"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Report implements reconcile.Cluster. It writes the status if it has changed, an event for each change made by the
// pass, and an event when the cluster becomes blocked.
func (c *cluster) Report(
	ctx context.Context, entry report.Cluster, source reconcile.SourceStatus,
) ([]report.News, error) {
	if entry.Decision.Verdict == decide.Block {
		c.live.deletions.FoundBlocked(c.target.Key())
	}
	custom := c.own.Custom
	if custom == nil {
		return nil, nil // the custom resource has not been applied yet
	}
	if !c.listed.Readable() {
		return nil, nil // unknown content must not be overwritten
	}
	now, err := c.kube().Now()
	if err != nil {
		return nil, err // the observation needed the time too, so it has already failed
	}
	if entry.Decision.Verdict == "" {
		return nil, c.reportUnobserved(ctx, entry.Error, now)
	}
	entry.State.Objects.Rewritten = c.rewritten // includes fields of objects that this pass has applied
	next := status.New(custom, c.target, entry, source)
	events := status.Events(custom, next, c.target, entry, c.live.holder.Host, now)
	failures := []error{c.annotateClaims(ctx)}
	written, round := true, c.live.options.Round
	if status.WorthWriting(custom.Status, next) &&
		!(status.MovesRevision(custom.Status, next) && now.Sub(kube.StatusWrittenAt(custom)) < round) {
		// On a conflict, another pass has written a newer status.
		_, err := c.kube().ApplyStatus(ctx, custom, next)
		if written = err == nil; !kube.IsConflict(err) {
			failures = append(failures, err)
		}
	}
	if acted := entry.Outcome != nil && entry.Outcome.Changed; !written && !acted {
		return nil, c.live.advised(custom.Namespace, errors.Join(failures...)) // the next pass reports the news
	}
	for _, event := range events {
		failures = append(failures, c.kube().CreateEvent(ctx, custom, event))
	}
	return status.News(custom, next, events), c.live.advised(custom.Namespace, errors.Join(failures...))
}

// reportUnobserved sets the Ready condition to Unknown with the reason, and keeps the rest of the status.
func (c *cluster) reportUnobserved(ctx context.Context, why string, now time.Time) error {
	custom := c.own.Custom
	next, isNews := status.Unobserved(custom, why, now)
	if !isNews {
		return nil
	}
	if _, err := c.kube().ApplyStatus(ctx, custom, next); !kube.IsConflict(err) {
		return c.live.advised(custom.Namespace, err)
	}
	return nil // another pass has written a newer status
}
