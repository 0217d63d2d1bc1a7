package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// compare determines the differences between the live objects and the desired objects.
func (c *cluster) compare(ctx context.Context) error {
	c.compareCustom()
	if err := c.readCertificates(ctx); err != nil {
		return err
	}
	wanted, err := c.standing(nil)
	if err != nil {
		return err
	}
	for _, object := range wanted {
		if err := c.compareObject(object); err != nil {
			return err
		}
	}
	if len(wanted) > 0 {
		c.compareSurplus()
	}
	c.rewritten = slices.Clone(c.state.Objects.Rewritten)
	return nil
}

// standing returns the objects that should exist before an action or, if the action starts a rollout, after it. It
// returns nil if this cannot be determined.
func (c *cluster) standing(next decide.Action) ([]objects.Object, error) {
	if c.state.Record.Token == "" && !c.state.Formed() {
		return nil, nil // not bootstrapped yet, so nothing can have drifted
	}
	if len(c.state.Objects.Irreplaceable) > 0 || c.state.Distrusted() != "" {
		return nil, nil // the desired objects depend on the CA, which is unusable or not trusted
	}
	required := decide.RequiredRecord(c.state, "unknown")
	if required.Empty() {
		return nil, nil // without members, objects are not needed
	}
	in, err := c.input(required)
	if err != nil {
		return nil, err
	}
	if _, rolls := next.(decide.StartRollout); rolls {
		in.Kept = nil
	}
	return objects.Build(in)
}

// drift records that an object differs from the desired state; what describes the difference.
func (c *cluster) drift(id, what string) {
	if c.drifted[id] {
		return
	}
	c.drifted[id] = true
	drift := &c.state.Objects.Drift
	if strings.HasPrefix(id, "CronJob/") {
		drift = &c.state.Backups.Drift
	}
	*drift = append(*drift, fmt.Sprintf("%s: %s", strings.Replace(id, "/", " ", 1), what))
}

func (c *cluster) compareCustom() {
	what := c.target.Drift(c.own.Custom)
	if what == "" {
		return
	}
	if c.own.Custom != nil && len(c.sortOut([]decide.RewrittenField{c.rewrittenCluster(what, c.own.Custom)})) == 0 {
		return
	}
	c.state.Objects.DeclarationDiffers = true
	c.drift(v1alpha1.Kind+"/"+c.target.Cluster.Name, what)
}

func (c *cluster) compareObject(wanted objects.Object) error {
	id := wanted.Kind + "/" + wanted.Name
	live := c.own.Objects[id]
	if live == nil {
		if c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleDeleted {
			c.drift(id, "missing")
		}
		return nil
	}
	// Nearly all objects are unchanged.
	if len(objects.UnwantedKeys(wanted, live)) == 0 && kube.Unchanged(wanted.Apply, live, objects.FilledIn) {
		return nil
	}
	different, err := differences(wanted, live)
	if err != nil {
		return err
	}
	var fields []decide.RewrittenField
	for _, d := range different {
		fields = append(fields, rewrittenField(wanted.String(), d, live))
	}
	if drift := c.sortOut(fields); len(drift) > 0 {
		c.drift(id, "changed at "+summarize(drift))
	}
	return nil
}

// summarize returns a text that names the first few fields and the managers that set them.
func summarize(fields []decide.RewrittenField) string {
	const few = 3
	var names []string
	for _, f := range fields[:min(few, len(fields))] {
		name := f.Field
		if f.By != "" {
			name += " by " + f.By
		}
		names = append(names, name)
	}
	if text := strings.Join(names, ", "); len(fields) > few {
		return fmt.Sprintf("%s and %d more", text, len(fields)-few)
	}
	return strings.Join(names, ", ")
}

// input returns the input for building the cluster's objects from a record. While the spec requests different pods, the
// current template of new pods is kept.
func (c *cluster) input(record decide.Record) (objects.Input, error) {
	in := objects.Input{
		WithoutSecrets: c.hidden != nil, BackupImage: c.backupImage(),
		WithoutDrill: c.state.Backups.DrillForeign != "",
		Cluster:      c.buildable, Record: record, Voters: len(record.Members), Certificates: c.certificates,
		Declared: objects.Template{Version: c.state.Declared.Version, SpecHash: c.state.Declared.SpecHash},
		Peers:    c.peers(c.state.Membership), Runs: c.runs(),
	}
	if order := c.state.Declared.Adoption; order.ClusterID == record.Adopted {
		in.GuestEndpoints = order.Endpoints
	}
	if service := inventory.Get[*corev1.Service](c.own, "Service", c.names.ClientService); service != nil {
		in.Leads = len(service.Spec.Selector) > 0
	}
	if c.state.Membership.Known {
		in.Guests = len(c.state.Guests())
		in.Voters = max(len(c.state.Membership.Voters())-in.Guests, 1)
		in.Learners = len(c.state.Membership.Members) - len(c.state.Membership.Voters())
	} else if budget := inventory.Get[*policyv1.PodDisruptionBudget](c.own, "PodDisruptionBudget",
		c.names.PodDisruptionBudget); budget != nil && budget.Spec.MinAvailable != nil {
		in.MinAvailable = budget.Spec.MinAvailable.IntValue()
	}
	for _, r := range c.state.Replicas {
		if r.PodUID != "" {
			in.Pods = append(in.Pods, objects.Template{Version: r.PodVersion, SpecHash: r.PodSpecHash})
		}
	}
	if configMap := inventory.Get[*corev1.ConfigMap](c.own, "ConfigMap", c.names.ConfigMap); configMap != nil {
		in.Live = configMap.Data
	}
	if !c.state.WantsOtherPods() {
		return in, nil
	}
	var err error
	in.Kept, err = kube.Owned(c.own.Objects["StatefulSet/"+c.names.StatefulSet])
	return in, err
}

// runsDeclared reports whether new pods match the spec, that is, whether their template was built from the same values,
// perhaps in a different notation. It returns false if this cannot be determined.
func (c *cluster) runsDeclared() bool {
	if c.runs().IsDeclared(&c.target.Cluster) {
		return true
	}
	owned, err := kube.Owned(c.own.Objects["StatefulSet/"+c.names.StatefulSet])
	if err != nil {
		return false
	}
	in := objects.Input{Cluster: c.buildable, Record: c.state.Record, Runs: c.runs()}
	if configMap := inventory.Get[*corev1.ConfigMap](c.own, "ConfigMap", c.names.ConfigMap); configMap != nil {
		in.Live = configMap.Data
	}
	same, err := objects.RunsDeclared(in, owned)
	return same && err == nil
}

// runs returns the template of the live StatefulSet, or zero if the StatefulSet does not exist.
func (c *cluster) runs() objects.Template {
	return objects.Template{Version: c.state.Objects.RunsVersion, SpecHash: c.state.Objects.RunsHash}
}

// peers returns the peer URLs of the members that etcd lists, by name, or nil if the list is unknown. A replica that
// has not started does not have a name yet, so its pod's name is used. Other members' names may be equal to each other
// or to a replica's name, so their IDs are used. etcd compares only the URLs.
func (c *cluster) peers(membership decide.Membership) map[string][]string {
	if !membership.Known {
		return nil
	}
	peers := map[string][]string{}
	for _, m := range membership.Members {
		name := fmt.Sprintf("guest-%016x", uint64(m.ID))
		if ordinal, ours := c.state.OrdinalOf(m); ours {
			name = c.state.ReplicaName(ordinal)
		}
		peers[name] = slices.Sorted(slices.Values(append([]string{m.PeerURL}, m.MorePeerURLs...)))
	}
	return peers
}

// backupImage returns the image of backup pods, or "" if the backup objects must be left unchanged.
func (c *cluster) backupImage() string {
	if c.hiddenBackups != nil || c.state.Backups.Foreign != "" {
		return ""
	}
	return c.live.options.BackupImage
}

// identities returns the objects that the cluster should have, and those that it should no longer have.
func (c *cluster) identities() []objects.Identity {
	list := objects.Identities(&c.target.Cluster)
	for _, object := range c.surplus() {
		list = append(list, object.Identity)
	}
	for _, id := range []objects.Identity{c.names.Restore(), c.names.Recovery()} {
		if c.volumeJob(id) != nil {
			list = append(list, id)
		}
	}
	return list
}

// surplus returns the objects that Quorate created and git no longer declares. It ignores unmanaged objects with the
// same names, regardless of their labels.
func (c *cluster) surplus() []surplusObject {
	var list []surplusObject
	for _, optional := range []struct {
		id       objects.Identity
		declared bool
	}{
		{c.names.Policy(), c.target.Cluster.Spec.NetworkPolicy != nil},
		{c.names.Backups(), c.target.Cluster.Spec.Backup != nil},
		{c.names.Drills(), c.target.Cluster.Spec.Backup != nil && c.target.Cluster.Spec.Backup.Drill != nil},
	} {
		object := c.own.Objects[optional.id.Kind+"/"+optional.id.Name]
		if object == nil || optional.declared || !kube.Applied(object) {
			continue
		}
		owner := metav1.GetControllerOf(object)
		if owner != nil && owner.Kind == v1alpha1.Kind && owner.Name == c.target.Cluster.Name {
			list = append(list, surplusObject{optional.id, string(object.GetUID())})
		}
	}
	return list
}

// surplusObject is an observed object that is no longer declared.
type surplusObject struct {
	objects.Identity
	uid string
}

func (c *cluster) compareSurplus() {
	if c.target.Cluster.Spec.Lifecycle == v1alpha1.LifecycleDeleted {
		return
	}
	for _, object := range c.surplus() {
		c.drift(object.Kind+"/"+object.Name, "not declared")
	}
}
