package clusters

import (
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/objects"
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
	naming := decide.State{Name: c.target.cluster.Name}
	for _, pod := range c.own.pods {
		if ordinal, ours := naming.Ordinal(pod.Name); ours {
			r := slot(ordinal)
			made := objects.ReadMetadata(pod.Annotations)
			r.PodUID, r.PodVersion, r.PodSpecHash = string(pod.UID), made.Version, made.SpecHash
			r.Pod, r.PodMessage = podPhase(pod)
			r.PodSince, r.PodCrashes = unreadySince(pod), crashes(pod)
			r.NoData, r.NoPeers = endedSaying(pod, noDataWords), endedSaying(pod, noPeersWords)
			r.PodStarted, r.PodGoing = startedAt(pod, r.Pod), goingAt(pod)
			r.PodStoppedByCheck = stoppedByCheck(pod)
		}
	}
	for _, claim := range c.own.claims {
		if ordinal, ours := naming.Ordinal(strings.TrimPrefix(claim.Name, objects.VolumeClaimPrefix)); ours {
			r := slot(ordinal)
			r.VolumeUID, r.VolumeTerminating = string(claim.UID), claim.DeletionTimestamp != nil
			r.VolumeToken = objects.ReadMetadata(claim.Annotations).Token
		}
	}
	list := make([]decide.Replica, 0, len(slots))
	for _, r := range slots {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b decide.Replica) int { return a.Ordinal - b.Ordinal })
	return list
}
