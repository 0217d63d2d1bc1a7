package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// removeMember removes a member from etcd if the evidence of its loss still holds.
func (c *cluster) removeMember(ctx context.Context, a decide.RemoveMember) (report.Outcome, error) {
	wanted := removal(a)
	wanted.patient = true
	wanted.unless = func(ctx context.Context, now decide.Membership) (string, error) { return c.disproof(ctx, a, now) }
	told := wanted.request
	wanted.request = func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
		if err := c.announce(ctx, a); err != nil {
			return err
		}
		return told(ctx, clients, cluster)
	}
	return c.changeEtcd(ctx, a, wanted)
}

// announce records the removal of a member before it is requested from etcd, if etcd would no longer list a majority of
// the recorded voters afterwards. Without the announcement, the removal would look like a forced new cluster.
func (c *cluster) announce(ctx context.Context, a decide.RemoveMember) error {
	if c.state.Record.Hosts(a.ID) || !decide.NeedsAnnouncement(c.state, a.ID) {
		return nil
	}
	announced, err := decide.AnnouncedRecord(c.state, a.ID)
	if err != nil {
		return err
	}
	in, err := c.input(announced)
	if err != nil {
		return err
	}
	_, err = c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" })
	return err
}

// disproof returns the reason why a member may not be lost after all, or "". It reads the claim, its volume and the
// nodes again, because lists may be outdated or incomplete.
func (c *cluster) disproof(ctx context.Context, a decide.RemoveMember, now decide.Membership) (string, error) {
	answers := func(m decide.Member) bool { return m.ID == a.ID && m.Answers }
	ofSilence := slices.Contains([]decide.Loss{decide.Silence, decide.VolumeLost, decide.VolumeStranded},
		a.Evidence.Loss)
	if (ofSilence || !lists(c.state.Membership, answers)) && lists(now, answers) {
		return a.Name + " responds", nil
	}
	if decide.VotersChanged(c.state.Membership, now, a.ID) {
		return "the other voters have changed", nil
	}
	again := c.state
	again.Membership = now
	if a.Evidence.Loss == decide.Corruption && !again.Outvoted(a.ID) {
		return "the member's data is no longer known to differ from the majority's", nil
	}
	var err error
	if again.Replicas, err = c.volumesNow(ctx, c.ordinalsBeside(a.ID, now)); err != nil {
		return "", err
	}
	if decide.FewerCopies(c.state, again, a.ID) {
		return "fewer other voters than before are known to have the data on volumes that are kept", nil
	}
	if c.state.Record.Hosts(a.ID) {
		return c.guestNeeded(ctx, a.ID, now)
	}
	serves := func(m decide.Member) bool { return answers(m) && !m.Learner }
	if a.Evidence.Loss == "" && lists(c.state.Membership, serves) { // it can stay until all other members are healthy
		if unready, err := c.othersUnready(ctx, a.Name); err != nil || unready != "" {
			return unready, err
		}
	}
	if a.Evidence.VolumeUID == "" {
		return "", nil
	}
	ordinal, ours := c.state.Ordinal(a.Name)
	if !ours {
		return "", fmt.Errorf("%s: %q is not the name of a replica", a, a.Name)
	}
	name := objects.VolumeClaimName(c.state.Name, ordinal)
	found, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil {
		return "", err
	}
	return c.volumeSpeaksAgainst(ctx, a.Evidence, name, found)
}

// guestNeeded returns the reason why a guest must not be removed now, or "". The other members must have quorum. If the
// guest responds, the replicas must have quorum without any guest, one of them must lead, and their pods must be ready.
func (c *cluster) guestNeeded(ctx context.Context, id decide.ID, now decide.Membership) (string, error) {
	record, _, err := c.recordNow(ctx)
	if err != nil {
		return "", err
	}
	released := slices.Contains(c.state.Declared.Adoption.Release, id)
	if !record.Hosts(id) || !released || record.Adopted != now.ClusterID {
		return fmt.Sprintf("%s is not recorded as a guest that git releases", id), nil
	}
	others := now.Without(id)
	if !others.HasQuorum() {
		return "the other members would not have quorum", nil
	}
	if !lists(now, func(m decide.Member) bool { return m.ID == id && m.Answers }) {
		return "", nil
	}
	healthy, leads := 0, false
	for _, m := range others.Voters() {
		if _, ours := c.state.OrdinalOf(m); ours && m.Answers {
			healthy, leads = healthy+1, leads || m.Leader
		}
	}
	switch {
	case healthy < decide.Quorum(len(others.Voters())):
		return "the replicas would not have quorum without the guests", nil
	case !leads:
		return "a guest leads", nil
	}
	return c.othersUnready(ctx, "")
}

// ordinalsBeside returns the ordinals of all voters except the given member.
func (c *cluster) ordinalsBeside(id decide.ID, now decide.Membership) decide.Ordinals {
	var beside decide.Ordinals
	for _, m := range now.Voters() {
		if ordinal, ours := c.state.OrdinalOf(m); ours && m.ID != id {
			beside = beside.With(ordinal)
		}
	}
	return beside
}

// volumeSpeaksAgainst returns the reason why the current claim does not prove the loss, or "".
func (c *cluster) volumeSpeaksAgainst(
	ctx context.Context, because decide.LossEvidence, name string, now metav1.Object,
) (string, error) {
	claim, there := now.(*corev1.PersistentVolumeClaim)
	same := there && string(claim.UID) == because.VolumeUID
	switch {
	case because.Loss == decide.VolumeStranded && same:
		return c.withinReach(ctx, claim)
	case because.Loss == decide.VolumeStranded:
		return fmt.Sprintf("PersistentVolumeClaim %s has been replaced", name), nil
	case same && claim.DeletionTimestamp == nil:
		return fmt.Sprintf("PersistentVolumeClaim %s still exists", name), nil
	}
	return "", nil
}

// withinReach returns a message if a pod can use the claim's volume on one of the current nodes.
func (c *cluster) withinReach(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	why, err := c.strands(ctx, claim, func() ([]corev1.Node, error) { return c.kube().Nodes(ctx) })
	if err != nil || why != "" {
		return "", err
	}
	return strings.TrimSpace(fmt.Sprintf("volume %s is reachable again", claim.Spec.VolumeName)), nil
}
