package clusters

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/reconcile/decide"
)

// replicas lists the slots that have a pod or a volume.
func (c *cluster) replicas() []decide.Replica {
	slots := map[int]*decide.Replica{}
	slot := func(ordinal int) *decide.Replica {
		if slots[ordinal] == nil {
			slots[ordinal] = &decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent}
		}
		return slots[ordinal]
	}
	naming := decide.State{Name: c.target.Cluster.Name}
	for _, pod := range c.own.Pods {
		if ordinal, ours := naming.Ordinal(pod.Name); ours {
			r := slot(ordinal)
			made := objects.ReadMetadata(pod.Annotations)
			r.PodUID, r.PodVersion, r.PodSpecHash = string(pod.UID), made.Version, made.SpecHash
			r.Pod, r.PodMessage = podstate.Phase(pod)
			r.PodSince, r.PodCrashes = podstate.UnreadySince(pod), podstate.Crashes(pod)
			r.NoData, r.NoPeers = podstate.NoData(pod), podstate.NoPeers(pod)
			r.PodStarted, r.PodGoing = podstate.StartedAt(pod, r.Pod), podstate.GoneBy(pod)
			r.PodStoppedByCheck = podstate.StoppedByCheck(pod)
		}
	}
	for _, claim := range c.own.Claims {
		name, is := strings.CutPrefix(claim.Name, objects.VolumeClaimPrefix)
		if ordinal, ours := naming.Ordinal(name); is && ours {
			r := slot(ordinal)
			r.VolumeUID, r.VolumeTerminating = string(claim.UID), claim.DeletionTimestamp != nil
			r.VolumeToken = objects.ReadMetadata(claim.Annotations).Token
			r.LostCluster, r.LastUse = objects.LostCluster(claim.Annotations), objects.LastUse(claim.Annotations)
		}
	}
	list := make([]decide.Replica, 0, len(slots))
	for _, r := range slots {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b decide.Replica) int { return a.Ordinal - b.Ordinal })
	return list
}

// readQuotas reads the quotas of pods that were built from a different declaration, from the pods' configuration files.
func (c *cluster) readQuotas() {
	configMap := inventory.Get[*corev1.ConfigMap](c.own, "ConfigMap", c.names.ConfigMap)
	declared := objects.Template{Version: c.state.Declared.Version, SpecHash: c.state.Declared.SpecHash}
	if configMap == nil {
		return
	}
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		made := objects.Template{Version: r.PodVersion, SpecHash: r.PodSpecHash}
		if r.PodUID != "" && made != declared {
			r.PodQuota = objects.RunningQuota(configMap.Data, c.state.ReplicaName(r.Ordinal), made)
		}
	}
}
