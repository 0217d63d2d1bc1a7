package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Do implements reconcile.Cluster. It takes the lease first and renews it during the action. Each action rereads the
// state that it relies on. If an object has changed since, the action leaves it to the next pass.
func (c *cluster) Do(ctx context.Context, action decide.Action) (report.Outcome, error) {
	if c.live.options.Reading {
		return report.Outcome{}, errReading
	}
	ctx, release, err := c.hold(ctx)
	if err != nil {
		return report.Outcome{}, c.live.advised(c.target.Cluster.Namespace, err)
	}
	defer release()
	var outcome report.Outcome
	if err = c.stillDeclared(ctx); err == nil {
		outcome, err = c.carryOut(ctx, action)
	}
	switch {
	case err == nil:
	case errors.Is(c.stillOurs(ctx), reconcile.ErrLocked):
		return outcome, c.stillOurs(ctx) // another pass holds the lease and continues, so err does not matter
	case kube.IsConflict(err):
		outcome.Detail = strings.TrimPrefix(outcome.Detail+"; not yet: "+err.Error(), "; ")
		return outcome, nil
	}
	return outcome, c.live.advised(c.target.Cluster.Namespace, err)
}

// stillDeclared returns kube.ErrConflict if the custom resource is itself the declaration and has changed since it was
// listed. The change may have canceled the action.
func (c *cluster) stillDeclared(ctx context.Context) error {
	seen := c.own.Custom
	if seen == nil || c.target.Applied != nil {
		return nil
	}
	_, err := c.lookAgain(ctx, seen)
	return err
}

// lookAgain rereads the custom resource. It returns kube.ErrConflict if the custom resource has been deleted or
// replaced, or if its spec has changed.
func (c *cluster) lookAgain(ctx context.Context, seen *v1alpha1.EtcdCluster) (metav1.Object, error) {
	now, err := c.kube().LookCluster(ctx, seen.Namespace, seen.Name)
	if err == nil && (now == nil || now.GetUID() != seen.UID || now.GetGeneration() != seen.Generation) {
		err = fmt.Errorf("EtcdCluster %s: %w", seen.Name, kube.ErrConflict)
	}
	return now, err
}

func (c *cluster) carryOut(ctx context.Context, action decide.Action) (report.Outcome, error) {
	switch a := action.(type) {
	case decide.Declare:
		return c.declare(ctx)
	case decide.Bootstrap:
		return c.found(ctx, a)
	case decide.Seal:
		return c.seal(ctx, a)
	case decide.ApplyObjects:
		return c.applyObjects(ctx)
	case decide.RenewCertificates:
		return c.renewCertificates(ctx)
	case decide.StopPods:
		return c.stopPods(ctx)
	case decide.StopReplicas:
		return c.stopReplicas(ctx, a)
	case decide.StartBackup, decide.DiscardBackup, decide.StartRestore, decide.StopRestore, decide.FinishRestore,
		decide.StartRecovery, decide.StopRecovery, decide.FinishRecovery:
		return c.carryOutByJob(ctx, action)
	case decide.StartRollout:
		return c.startRollout(ctx, a)
	case decide.RestartReplica:
		return c.restartReplica(ctx, a)
	case decide.DeleteVolume:
		return c.deleteVolume(ctx, a)
	case decide.DeleteObjects:
		return c.deleteObjects(ctx)
	case decide.AddLearner:
		return c.addLearner(ctx, a)
	case decide.PromoteLearner:
		return c.promoteLearner(ctx, a)
	case decide.RemoveMember:
		return c.removeMember(ctx, a)
	case decide.MoveLeader:
		return c.changeEtcd(ctx, a, moveLeader(a))
	case decide.DisarmAlarm:
		return c.disarmAlarm(ctx, a)
	case decide.Defragment:
		return c.defragment(ctx, a)
	case decide.EnableDowngrade:
		return c.changeEtcd(ctx, a, downgrade(a))
	case decide.CancelDowngrade:
		return c.changeEtcd(ctx, a, noDowngrade(a))
	}
	return report.Outcome{}, notCarriedOut(action)
}

func notCarriedOut(action decide.Action) error {
	return fmt.Errorf("this version does not carry out this action: %s", action)
}

// carryOutByJob carries out actions on Jobs.
func (c *cluster) carryOutByJob(ctx context.Context, action decide.Action) (report.Outcome, error) {
	switch a := action.(type) { //nolint:gochecksumtype // carryOut lists all actions
	case decide.StartBackup:
		return c.startBackup(ctx, a)
	case decide.DiscardBackup:
		return c.discardBackup(ctx, a)
	case decide.StartRestore:
		return c.startRestore(ctx, a)
	case decide.StopRestore:
		return c.stopRestore(ctx, a)
	case decide.FinishRestore:
		return c.finishRestore(ctx, a)
	case decide.StartRecovery:
		return c.startRecovery(ctx, a)
	case decide.StopRecovery:
		return c.stopRecovery(ctx, a)
	case decide.FinishRecovery:
		return c.finishRecovery(ctx, a)
	}
	return report.Outcome{}, notCarriedOut(action)
}
