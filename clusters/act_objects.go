package clusters

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// declare writes the custom resource.
func (c *cluster) declare(ctx context.Context) (report.Outcome, error) {
	if c.target.Applied == nil || !c.state.Objects.DeclarationDiffers {
		return report.Outcome{}, nil
	}
	if err := c.stillOurs(ctx); err != nil {
		return report.Outcome{}, err
	}
	live, err := c.kube().ApplyCluster(ctx, c.target.Declaration(), c.own.Custom)
	if err != nil {
		return report.Outcome{}, err
	}
	c.own.Custom, c.target.Cluster.UID, c.buildable.UID = live, live.UID, live.UID
	c.noteRewrittenCluster(live)
	return report.Outcome{Changed: true, Detail: "applied EtcdCluster " + live.Name}, nil
}

// declareOwner ensures that the custom resource exists, because Kubernetes deletes objects whose owner does not exist.
func (c *cluster) declareOwner(ctx context.Context) (report.Outcome, error) {
	declared, err := c.declare(ctx)
	if err == nil && c.target.Cluster.UID == "" {
		err = fmt.Errorf("the custom resource of %s has been deleted, and the source does not declare the "+
			"cluster", c.target.Key())
	}
	return declared, err
}

// found creates all objects of a cluster that has never formed. The record is written before anything that could start
// a member, and is never overwritten: the first pass that writes the record determines its token and initial members.
func (c *cluster) found(ctx context.Context, a decide.Bootstrap) (report.Outcome, error) {
	var record decide.Record
	var err error
	if a.Adopts != 0 {
		record, err = c.adoptedRecord(ctx, a)
	} else {
		record, err = c.foundingRecord(ctx, a)
	}
	if err != nil {
		return report.Outcome{}, err
	}
	in, err := c.input(record)
	if err != nil {
		return report.Outcome{}, err
	}
	return c.apply(ctx, in, func(objects.Object) bool { return true })
}

func (c *cluster) foundingRecord(ctx context.Context, a decide.Bootstrap) (decide.Record, error) {
	record, found, err := c.recordNow(ctx)
	if err != nil {
		return decide.Record{}, err
	}
	if found {
		if record.ClusterID != 0 || slices.ContainsFunc(record.Members,
			func(m decide.RecordedMember) bool { return m.Mode != a.Mode() }) {
			return decide.Record{}, fmt.Errorf("the cluster has already formed (%s)", record.ClusterID)
		}
		return c.state.UnderCA(record), nil
	}
	if err := c.withoutClaims(ctx); err != nil {
		return decide.Record{}, err
	}
	if a.Restores {
		return c.state.UnderCA(decide.RestoringRecord(c.foundingToken())), nil
	}
	return c.state.UnderCA(decide.FoundingRecord(c.foundingToken(), a.Replicas)), nil
}

// withoutClaims returns an error if the cluster has volumes.
func (c *cluster) withoutClaims(ctx context.Context) error {
	claims, err := c.kube().HasClaims(ctx, c.target.Cluster.Namespace,
		objects.LabelCluster+"="+c.target.Cluster.Name)
	if err == nil && claims {
		err = fmt.Errorf("volumes of %s now exist", c.target.Key())
	}
	return err
}

// adoptedRecord returns the initial record of a cluster that adopts another. It queries that cluster again and returns
// an error unless it can still be adopted and has the same members as when the adoption was decided.
func (c *cluster) adoptedRecord(ctx context.Context, a decide.Bootstrap) (decide.Record, error) {
	_, found, err := c.recordNow(ctx)
	if err == nil && found {
		err = fmt.Errorf("ConfigMap %s: %w", c.names.ConfigMap, kube.ErrConflict)
	}
	if err == nil {
		err = c.withoutClaims(ctx)
	}
	if err != nil {
		return decide.Record{}, err
	}
	again := c.state
	again.Source = c.askEndpoints(ctx, true)
	if d := decide.Decide(again); d.Action != a || !slices.Equal(memberIDs(again.Source), memberIDs(c.state.Source)) {
		return decide.Record{}, fmt.Errorf("the cluster to adopt has changed: %w", kube.ErrConflict)
	}
	// The guests' etcd allows only one learner, so the token must not permit more.
	return decide.AdoptedRecord(again, cmp.Or(c.state.Objects.RunsToken, newToken())), nil
}

// memberIDs returns the IDs of the listed members, in ascending order.
func memberIDs(m decide.Membership) []decide.ID {
	var ids []decide.ID
	for _, member := range m.Members {
		ids = append(ids, member.ID)
	}
	slices.Sort(ids)
	return ids
}

// recordNow reads the current record and reports whether it exists.
func (c *cluster) recordNow(ctx context.Context) (record decide.Record, found bool, err error) {
	object, err := c.kube().Look(ctx, "ConfigMap", c.target.Cluster.Namespace, c.names.ConfigMap)
	present, ok := object.(*corev1.ConfigMap)
	if err != nil || !ok || present.Data[objects.RecordKey] == "" {
		return decide.Record{}, false, err
	}
	record, err = objects.DecodeRecord(present.Data[objects.RecordKey])
	if err != nil {
		return decide.Record{}, false, fmt.Errorf("read %s in ConfigMap %s: %w", objects.RecordKey,
			c.names.ConfigMap, err)
	}
	return record, true, nil
}

// foundingToken returns a token for a new cluster.
func (c *cluster) foundingToken() string {
	return decide.FoundingToken(newToken(), c.target.Cluster.Spec.Version)
}

// newToken returns a nonce for a cluster's token, so that the members of an earlier cluster with the same name count
// as unknown members (hard case H4).
func newToken() string {
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	return hex.EncodeToString(nonce)
}

// applyObjects corrects objects that have drifted.
func (c *cluster) applyObjects(ctx context.Context) (report.Outcome, error) {
	if c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning { // a running cluster keeps its volumes
		if going, err := c.stopsOnGoingVolume(ctx); going != "" || err != nil {
			return report.Outcome{Detail: going}, err
		}
	}
	in, err := c.input(decide.RequiredRecord(c.state, newToken()))
	if err != nil {
		return report.Outcome{}, err
	}
	outcome, err := c.apply(ctx, in, func(o objects.Object) bool { return c.drifted[o.Kind+"/"+o.Name] })
	if err != nil {
		return outcome, err
	}
	for _, step := range []func(context.Context) (string, error){c.unmark, c.deleteSurplus} {
		done, err := step(ctx)
		if done != "" {
			outcome.Changed, outcome.Detail = true, strings.TrimPrefix(outcome.Detail+"; "+done, "; ")
		}
		if err != nil {
			return outcome, err
		}
	}
	return outcome, nil
}

// apply applies the custom resource, which owns all other objects, and then the wanted objects in order. It does not
// overwrite an object that has changed since it was observed. The outcome lists the applied objects, even after an
// error.
func (c *cluster) apply(
	ctx context.Context, in objects.Input, wanted func(objects.Object) bool,
) (report.Outcome, error) {
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
		applied = append(applied, "EtcdCluster "+c.target.Cluster.Name)
	}
	for _, object := range built {
		if !wanted(object) {
			continue
		}
		var live metav1.Object
		if live, err = c.applyOne(ctx, object); err != nil {
			break
		}
		if err = c.noteRewritten(object, live); err != nil {
			break
		}
		applied = append(applied, object.Kind+" "+object.Name)
	}
	if len(applied) == 0 {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "applied " + strings.Join(applied, ", ")}, err
}

// applyOne applies an object, unless it has changed since it was observed, and returns the resulting live object.
func (c *cluster) applyOne(ctx context.Context, object objects.Object) (live metav1.Object, err error) {
	read, err := c.asObserved(ctx, object)
	if err == nil {
		err = c.stillOurs(ctx)
	}
	if err == nil {
		live, err = c.kube().ApplyIfUnchanged(ctx, object.Apply, read)
	}
	if unwanted := objects.UnwantedKeys(object, live); err == nil && len(unwanted) > 0 {
		live, err = c.kube().RemoveKeys(ctx, live, unwanted)
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", object.Kind, object.Name, err)
	}
	return live, nil
}

// asObserved returns the version of an object that an apply may overwrite, or nil if the object did not exist. For an
// object with a generation, it returns the newest version, because Kubernetes keeps updating the object's status.
func (c *cluster) asObserved(ctx context.Context, object objects.Object) (metav1.Object, error) {
	read := c.own.Objects[object.Kind+"/"+object.Name]
	if read == nil || read.GetGeneration() == 0 {
		return read, nil
	}
	now, err := c.kube().Look(ctx, object.Kind, c.target.Cluster.Namespace, object.Name)
	if err != nil {
		return nil, err
	}
	if now == nil || now.GetUID() != read.GetUID() || now.GetGeneration() != read.GetGeneration() {
		return nil, kube.ErrConflict
	}
	return now, nil
}
