package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// timeToRefresh is the timeout for reading the custom resource after an action.
const timeToRefresh = 5 * time.Second

// defragment defragments a member if it is still safe to do so. If the request fails or times out, the outcome contains
// the reason, so that the status records the reason. etcd may still complete the defragmentation. The attempt itself is
// recorded before the request. Otherwise, if passes kept dying, each pass would repeat the attempt.
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
	begin := func() error { return c.noteDefragmentation(ctx, a) }
	done, err := c.live.etcd.Defragment(ctx, c.etcd(c.asked(), c.clientTLS()), a.ID, begin)
	if notYet := (etcd.NotYet{}); errors.As(err, &notYet) {
		return report.Outcome{Detail: "etcd: not yet: " + strings.Join(strings.Fields(notYet.Error()), " ")}, nil
	}
	c.refresh(ctx)
	if lost := c.stillOurs(ctx); err != nil && errors.Is(lost, reconcile.ErrLocked) {
		return report.Outcome{}, lost
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // Quorate is being stopped
		return report.Outcome{Changed: true, Detail: "etcd: " + decide.Unfinished, Failure: decide.Unfinished}, nil
	}
	if err != nil {
		failure := strings.Join(strings.Fields(err.Error()), " ")
		return report.Outcome{Changed: true, Detail: "etcd: " + failure, Failure: failure}, nil
	}
	return report.Outcome{Changed: true, Detail: fmt.Sprintf("etcd: %s: from %s to %s in %s", c.state.DescribeAction(a),
		mebibytes(done.Before), mebibytes(done.After), done.Took.Round(time.Millisecond))}, nil
}

func mebibytes(size int64) string { return fmt.Sprintf("%.1fMi", float64(size)/(1<<20)) }

// noteDefragmentation records in the status that a member's defragmentation is about to begin.
func (c *cluster) noteDefragmentation(ctx context.Context, a decide.Defragment) error {
	custom := c.own.Custom
	if custom == nil {
		return errors.New("the custom resource does not exist yet")
	}
	next := custom.Status.DeepCopy()
	if !status.NoteDefragmentation(next, c.state, a.ID) {
		return errors.New("the custom resource's status does not list the member yet")
	}
	live, err := c.kube().ApplyStatus(ctx, custom, *next)
	if err != nil {
		return err
	}
	c.own.Custom = live
	if !status.KeepsDefragmentation(live.Status, a.ID, c.state.Now) {
		return errors.New("the custom resource's status does not keep the attempt: update the EtcdCluster definition " +
			"with \"quorate install\"")
	}
	return nil
}

// refresh reads the custom resource's current resourceVersion, so that the status can be written even if something else
// has changed the custom resource during an action. It keeps the old resourceVersion if the spec has changed, or if the
// custom resource has been replaced or cannot be read.
func (c *cluster) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToRefresh)
	defer cancel()
	if now, err := c.lookAgain(ctx, c.own.Custom); err == nil {
		c.own.Custom = c.own.Custom.DeepCopy()
		c.own.Custom.ResourceVersion = now.GetResourceVersion()
	}
}
