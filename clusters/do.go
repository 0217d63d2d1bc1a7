package clusters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Do implements reconcile.Cluster. It takes the lease first; each action reads again what it relies on.
func (c *cluster) Do(ctx context.Context, action decide.Action) (report.Outcome, error) {
	if err := c.lock(ctx); err != nil {
		return report.Outcome{}, err
	}
	switch a := action.(type) {
	case decide.Declare:
		return c.declare(ctx)
	case decide.Found:
		return c.found(ctx, a)
	case decide.Seal:
		return c.seal(ctx, a)
	case decide.ApplyObjects:
		return c.applyObjects(ctx)
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
		return c.changeEtcd(ctx, a, promotion(a))
	case decide.RemoveMember:
		return c.removeMember(ctx, a)
	case decide.MoveLeader:
		return c.changeEtcd(ctx, a, handover(a))
	case decide.DisarmAlarm:
		return c.disarmAlarm(ctx, a)
	case decide.EnableDowngrade:
		return c.changeEtcd(ctx, a, downgrade(a))
	case decide.CancelDowngrade:
		return c.changeEtcd(ctx, a, noDowngrade(a))
	}
	return report.Outcome{}, fmt.Errorf("%s is not carried out by this version", action)
}

// declare writes the custom resource.
func (c *cluster) declare(ctx context.Context) (report.Outcome, error) {
	if c.target.applied == nil || !c.state.Objects.DeclarationDiffers {
		return report.Outcome{}, nil
	}
	live, err := c.live.kube.ApplyCluster(ctx, c.target.declaration())
	if err != nil {
		return report.Outcome{}, err
	}
	c.own.custom, c.target.cluster.UID, c.buildable.UID = live, live.UID, live.UID
	return report.Outcome{Changed: true, Detail: "applied EtcdCluster " + live.Name}, nil
}

// declareOwner makes sure that the custom resource is there to own the rest: what has no owner Kubernetes collects.
func (c *cluster) declareOwner(ctx context.Context) (report.Outcome, error) {
	declared, err := c.declare(ctx)
	if err == nil && c.target.cluster.UID == "" {
		err = fmt.Errorf("the custom resource of %s is gone and the source does not say what it was", c.target.key())
	}
	return declared, err
}

// found makes all objects of a cluster that has never formed. The record comes before everything that could start a member,
// and is never written over: its token and its founding members are those of the first pass that got so far.
func (c *cluster) found(ctx context.Context, a decide.Found) (report.Outcome, error) {
	record, err := c.foundingRecord(ctx, a)
	if err != nil {
		return report.Outcome{}, err
	}
	in, err := c.input(record)
	if err != nil {
		return report.Outcome{}, err
	}
	return c.apply(ctx, in, func(objects.Object) bool { return true })
}

func (c *cluster) foundingRecord(ctx context.Context, a decide.Found) (decide.Record, error) {
	namespace := c.target.cluster.Namespace
	found, err := c.live.kube.Look(ctx, "ConfigMap", namespace, c.names.ConfigMap)
	if err != nil {
		return decide.Record{}, err
	}
	if present, ok := found.(*corev1.ConfigMap); ok && present.Data[objects.RecordKey] != "" {
		record, err := objects.DecodeRecord(present.Data[objects.RecordKey])
		if err != nil {
			return decide.Record{}, fmt.Errorf("read the record in ConfigMap %s: %w", c.names.ConfigMap, err)
		}
		if record.ClusterID != 0 || slices.ContainsFunc(record.Members, func(m decide.RecordedMember) bool { return m.Mode != decide.Founding }) {
			return decide.Record{}, fmt.Errorf("the cluster has formed meanwhile (%s)", record.ClusterID)
		}
		return record, nil
	}
	claims, err := c.live.kube.HasClaims(ctx, namespace, objects.LabelCluster+"="+c.target.cluster.Name)
	if err != nil {
		return decide.Record{}, err
	}
	if claims {
		return decide.Record{}, fmt.Errorf("volumes of %s have appeared meanwhile", c.target.key())
	}
	return decide.FoundingRecord(newToken(), a.Replicas), nil
}

// newToken is the nonce in a cluster's token, so that members of an earlier cluster of the same name are strangers (survey H4).
func newToken() string {
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	return hex.EncodeToString(nonce)
}

// applyObjects puts right what has drifted.
func (c *cluster) applyObjects(ctx context.Context) (report.Outcome, error) {
	in, err := c.input(decide.StandingRecord(c.state, newToken()))
	if err != nil {
		return report.Outcome{}, err
	}
	return c.apply(ctx, in, func(o objects.Object) bool { return c.drifted[o.Kind+"/"+o.Name] })
}

// apply applies the custom resource, which owns the rest, and then those objects that are wanted, in order. The record is never
// written over another than the one that was observed.
func (c *cluster) apply(ctx context.Context, in objects.Input, wanted func(objects.Object) bool) (report.Outcome, error) {
	declared, err := c.declareOwner(ctx)
	if err != nil {
		return report.Outcome{}, err
	}
	built, err := objects.Build(in)
	if err != nil {
		return report.Outcome{}, err
	}
	var applied []string
	if declared.Changed {
		applied = append(applied, "EtcdCluster "+c.target.cluster.Name)
	}
	for _, object := range built {
		if !wanted(object) {
			continue
		}
		if err := c.live.kube.ApplyOver(ctx, object.Apply, c.own.objects["ConfigMap/"+object.Name]); err != nil {
			return report.Outcome{}, fmt.Errorf("apply %s %s: %w", object.Kind, object.Name, err)
		}
		applied = append(applied, object.Kind+" "+object.Name)
	}
	return report.Outcome{Changed: len(applied) > 0, Detail: "applied " + strings.Join(applied, ", ")}, nil
}

// seal writes the sealed configuration of members that have started, after asking etcd once more, and only over the record
// that was observed.
func (c *cluster) seal(ctx context.Context, a decide.Seal) (report.Outcome, error) {
	answer := c.askAgain(ctx)
	if !answer.Membership.Known || answer.Membership.ClusterID != a.ClusterID {
		return report.Outcome{}, fmt.Errorf("etcd no longer confirms that this is cluster %s", a.ClusterID)
	}
	now := c.state
	now.Membership = answer.Membership
	in, err := c.input(decide.SealedRecord(now, a, newToken()))
	if err != nil {
		return report.Outcome{}, err
	}
	in.Peers = c.peers(now.Membership)
	return c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" })
}
