package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// findStranded finds recorded members whose volumes can never be used by a pod again (hard case H46). It reads volumes
// and nodes only for replicas that have a volume but no pod on a node. If volumes or nodes cannot be read, it reports
// only that.
func (c *cluster) findStranded(ctx context.Context) {
	if c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning {
		return // pods are absent on purpose
	}
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		claim := c.own.Claim(objects.VolumeClaimName(c.state.Name, r.Ordinal))
		if _, recorded := c.state.Record.Member(r.Ordinal); !recorded || claim == nil || !c.homeless(*r) {
			continue
		}
		var err error
		if r.Stranded, err = c.strands(ctx, claim, c.nodes); err != nil {
			r.PodMessage = strings.TrimPrefix(fmt.Sprintf(
				"%s; cannot tell whether its volume is still reachable: %v", r.PodMessage, err), "; ")
		}
		if r.Stranded != "" {
			r.StrandedSince = status.StrandedBefore(c.own.Custom, c.state, r.Ordinal)
		}
	}
}

// homeless reports whether the replica's pod does not exist or is waiting for a node.
func (c *cluster) homeless(r decide.Replica) bool {
	pod := c.own.Pod(objects.PodName(c.state.Name, r.Ordinal))
	return pod == nil || r.Pod == decide.PodPending && pod.Spec.NodeName == ""
}

// strands returns the reason why a claim's volume can no longer be used, or "" if the volume can be used or does not
// exist yet.
func (c *cluster) strands(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, list func() ([]corev1.Node, error),
) (string, error) {
	name := claim.Spec.VolumeName
	if name == "" || claim.DeletionTimestamp != nil {
		return "", nil
	}
	volume, err := c.kube().Volume(ctx, name)
	switch {
	case err != nil:
		return "", err
	case volume == nil || claim.Status.Phase == corev1.ClaimLost:
		return c.volumeGone(ctx, claim)
	case volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil:
		return "", nil
	}
	nodes, err := list()
	if err != nil {
		return "", err
	}
	return outOfReach(volume, nodes)
}

// volumeGone returns a message that a claim's volume is gone, or "" if the claim has been deleted or replaced since it
// was listed.
func (c *cluster) volumeGone(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	now, err := c.kube().Look(ctx, "PersistentVolumeClaim", claim.Namespace, claim.Name)
	claimGoes := now == nil || now.GetUID() != claim.UID || now.GetDeletionTimestamp() != nil
	if err != nil || claimGoes {
		return "", err
	}
	return fmt.Sprintf("its volume %s has been deleted", claim.Spec.VolumeName), nil
}

// outOfReach returns a message if a volume is bound to a node that no longer exists. It returns "" for a volume that
// other nodes can use, such as any node in a zone, because a new node may appear.
func outOfReach(volume *corev1.PersistentVolume, nodes []corev1.Node) (string, error) {
	required := volume.Spec.NodeAffinity.Required
	var homes []string
	for _, term := range required.NodeSelectorTerms {
		home := homeOf(term)
		if len(home) == 0 {
			return "", nil
		}
		homes = append(homes, home...)
	}
	selector, err := nodeaffinity.NewNodeSelector(required)
	if err != nil {
		return "", fmt.Errorf("read the node affinity of PersistentVolume %s: %w", volume.Name, err)
	}
	if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return selector.Match(&n) }) {
		return "", nil
	}
	if len(homes) == 1 {
		return fmt.Sprintf("its volume %s belongs to node %s, which no longer exists", volume.Name, homes[0]), nil
	}
	return fmt.Sprintf("its volume %s belongs to nodes %s, which no longer "+
		"exist", volume.Name, strings.Join(homes, ", ")), nil
}

// nodeKeys lists the unprefixed names of labels that identify nodes, such as kubernetes.io/hostname,
// topology.topolvm.io/node and openebs.io/nodename.
var nodeKeys = []string{"hostname", "node", "nodename", "node-name", "nodeid", "node-id"}

// homeOf lists the names of the nodes to which a term is limited, or returns nil if other nodes may match.
func homeOf(term corev1.NodeSelectorTerm) []string {
	for _, field := range term.MatchFields {
		if field.Key == "metadata.name" && field.Operator == corev1.NodeSelectorOpIn {
			return field.Values
		}
	}
	for _, label := range term.MatchExpressions {
		name := label.Key[strings.LastIndex(label.Key, "/")+1:]
		if slices.Contains(nodeKeys, name) && label.Operator == corev1.NodeSelectorOpIn {
			return label.Values
		}
	}
	return nil
}

// findReplaced finds claims that were created while a pod was still using a deleted claim with the same name. The
// volume of such a claim does not contain the member's data. Unless it is the member's recorded volume, the replica is
// treated as having no volume until the pod is gone.
func (c *cluster) findReplaced(ctx context.Context) error {
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		pod, claim := c.own.Pod(objects.PodName(c.state.Name, r.Ordinal)),
			c.own.Claim(objects.VolumeClaimName(c.state.Name, r.Ordinal))
		if recorded, _ := c.state.Record.Member(r.Ordinal); claim != nil && recorded.VolumeUID == string(claim.UID) {
			continue
		}
		if pod == nil || claim == nil || podstate.RunsOn(pod, claim) {
			continue
		}
		// The claim may have been listed before it was bound, and the pod afterwards.
		now, err := c.kube().Look(ctx, "PersistentVolumeClaim", claim.Namespace, claim.Name)
		if err != nil {
			return err
		}
		if found, is := now.(*corev1.PersistentVolumeClaim); is && podstate.RunsOn(pod, found) {
			continue
		}
		r.VolumeUID, r.VolumeToken, r.VolumeTerminating, r.LostCluster, r.LastUse = "", "", false, 0, decide.LastUse{}
	}
	return nil
}

// findUnbound finds pods that wait forever for a volume. The scheduler assigns a node only once a pod's claims are
// bound, but such a pod's claim was deleted and recreated afterwards. The scheduler does not process the pod again, so
// a claim that waits for its first consumer never gets a volume. This happens if a claim is deleted while its pod is
// being scheduled, because the protection of claims in use ignores pods without a node.
func (c *cluster) findUnbound(ctx context.Context) error {
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		pod, claim := c.own.Pod(objects.PodName(c.state.Name, r.Ordinal)),
			c.own.Claim(objects.VolumeClaimName(c.state.Name, r.Ordinal))
		scheduled := r.Pod == decide.PodPending && pod.Spec.NodeName != ""
		if !scheduled || claim == nil || claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		// The claim may have been listed before it was bound, and the pod afterwards.
		now, err := c.kube().Look(ctx, "PersistentVolumeClaim", claim.Namespace, claim.Name)
		if err != nil {
			return err
		}
		same, found := now.(*corev1.PersistentVolumeClaim)
		r.PodUnbound = found && same.UID == claim.UID && same.Status.Phase == corev1.ClaimPending
	}
	return nil
}
