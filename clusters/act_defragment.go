package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// defragment defragments a member if it is still safe to do so. If the request fails or times out, the outcome contains
// the reason, so that the status records the attempt. etcd may still complete the defragmentation.
func (c *cluster) defragment(ctx context.Context, a decide.Defragment) (report.Outcome, error) {
	again := c.state
	again.Membership = c.askAgain(ctx).Membership
	if again.Membership.ClusterID != c.state.Membership.ClusterID {
		return report.Outcome{Detail: "etcd: not yet: " + again.Membership.Why}, nil
	}
	if why := again.RefuseDefragmentation(a.ID); why != "" {
		return report.Outcome{Detail: "not yet: " + why}, nil
	}
	if err := c.stillOurs(ctx); err != nil {
		return report.Outcome{}, err
	}
	done, err := c.live.etcd.Defragment(ctx, c.etcd(c.asked(), c.clientTLS()), a.ID)
	if notYet := (etcd.NotYet{}); errors.As(err, &notYet) {
		return report.Outcome{Detail: "etcd: not yet: " + notYet.Error()}, nil
	}
	if lost := c.stillOurs(ctx); err != nil && errors.Is(lost, reconcile.ErrLocked) {
		return report.Outcome{}, lost
	}
	if err != nil {
		failure := strings.Join(strings.Fields(err.Error()), " ")
		return report.Outcome{Changed: true, Detail: "etcd: " + failure, Failure: failure}, nil
	}
	return report.Outcome{Changed: true, Detail: fmt.Sprintf("etcd: %s: from %s to %s in %s",
		c.state.DescribeAction(a), mebibytes(done.Before), mebibytes(done.After), done.Took.Round(time.Millisecond))}, nil
}

func mebibytes(size int64) string { return fmt.Sprintf("%.1fMi", float64(size)/(1<<20)) }
