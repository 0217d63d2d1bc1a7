package decide

import (
	"fmt"
	"strings"
)

func invalidSpec(s State) (Decision, bool) {
	switch n := s.Declared.Replicas; {
	case len(s.Declared.Problems) > 0:
		return block("%s", sentence(s.Declared.Problems))
	case n < 1 || n > MaxOrdinals:
		return block("spec.replicas is %d; it must be between 1 and %d", n, MaxOrdinals)
	}
	return Decision{}, false
}

func foreignObjects(s State) (Decision, bool) {
	foreign := append(s.foreignVolumes(), s.Objects.Foreign...)
	if len(foreign) == 0 {
		return Decision{}, false
	}
	if s.Declared.Adoption.declared() {
		return block("%s. Give this cluster a different name: the conflicting objects may belong to the cluster to "+
			"adopt", sentence(foreign))
	}
	return block("%s. Rename or delete the conflicting objects, or give the cluster a different name",
		sentence(foreign))
}

// labelsLost blocks because objects without labels are missing in every list, and would sooner or later be treated as
// lost or foreign.
func labelsLost(s State) (Decision, bool) {
	if len(s.Objects.Relabelled) == 0 {
		return Decision{}, false
	}
	return block("%s. Restore the labels with kubectl label --overwrite, and find out what changed them. "+
		"No data is lost, but nothing is changed until the labels are restored", sentence(s.Objects.Relabelled))
}

// foreignVolumes returns volumes created for a token other than the recorded token: members that start on them belong
// to a different cluster.
func (s State) foreignVolumes() []string {
	var foreign []string
	for _, r := range s.Replicas {
		if s.Record.Token != "" && r.VolumeToken != "" && r.VolumeToken != s.Record.Token {
			foreign = append(foreign, fmt.Sprintf("the volume of %s was created for a different bootstrap of the "+
				"cluster (%s)", s.ReplicaName(r.Ordinal), r.VolumeToken))
		}
	}
	return foreign
}

func suspended(s State) (Decision, bool) {
	if !s.Declared.Suspended {
		return Decision{}, false
	}
	if s.Objects.DeclarationDiffers {
		return act(Declare{}, "updating the custom resource: the cluster is suspended")
	}
	return Decision{Verdict: Done, Message: "suspended: " + s.describe()}, true
}

func clusterIDMismatch(s State) (Decision, bool) {
	claims := s.clusterIDs()
	if len(claims) == 0 {
		return s.usedByDifferent()
	}
	var others []string
	for _, c := range claims[1:] {
		if c.id != claims[0].id {
			others = append(others, fmt.Sprintf("%s %s", c.who, c.id))
		}
	}
	if len(others) == 0 {
		return Decision{}, false
	}
	return block("%s %s, but %s%s", claims[0].who, claims[0].id, Enumerate(others), s.describeOldData())
}

// usedByDifferent blocks if only the claims show which cluster this is, and they name different clusters: a lost
// cluster's claims have come back without their marks, and its members would run alongside the cluster that was created
// from it.
func (s State) usedByDifferent() (Decision, bool) {
	var uses []string
	ids := map[ID]bool{}
	for _, r := range s.replicasInOrder() {
		if hasVolume(r) && r.LostCluster == 0 && r.LastUse.ClusterID != 0 {
			uses = append(uses, fmt.Sprintf("data-%s by %s", s.ReplicaName(r.Ordinal), r.LastUse.ClusterID))
			ids[r.LastUse.ClusterID] = true
		}
	}
	if len(ids) < 2 {
		return Decision{}, false
	}
	return block("the record and status are lost, and the claims were last used by different clusters: %s. Mark the "+
		"claims that belong to the lost cluster: kubectl annotate pvc CLAIM etcd.quorate.dev/lost-cluster=ID",
		Enumerate(uses))
}

// describeOldData returns which members started on data of a different cluster during bootstrap, and how to correct
// that, or "".
func (s State) describeOldData() string {
	var volumes []string
	for _, r := range s.replicasInOrder() {
		if id := s.foundingID(); id != 0 && r.ClusterID != 0 && r.ClusterID != id {
			volumes = append(volumes, s.ReplicaName(r.Ordinal))
		}
	}
	if len(volumes) == 0 {
		return ""
	}
	text := fmt.Sprintf(". %s started on data that existed before this cluster was bootstrapped. Keep these volumes. "+
		"To create a new cluster, declare it under a different name, with empty volumes",
		Enumerate(volumes))
	if len(volumes) == len(s.Record.Members) {
		text += fmt.Sprintf(". To run the cluster with that data under this name, delete record.yaml from ConfigMap "+
			"%s-members", s.Name)
	}
	return text
}

type claim struct {
	who string
	id  ID
}

// clusterIDs returns the known cluster IDs, in descending order of trust.
func (s State) clusterIDs() []claim {
	all := []claim{
		{"the recorded cluster ID is", s.Record.ClusterID},
		{"the cluster ID in the custom resource's status is", s.ReportedClusterID},
		{"the ID of the cluster being bootstrapped is", s.foundingID()},
		{"the cluster ID in etcd's member list is", s.Membership.ClusterID},
	}
	for _, r := range s.replicasInOrder() {
		all = append(all, claim{s.ReplicaName(r.Ordinal) + " belongs to cluster", r.ClusterID})
	}
	var known []claim
	for _, c := range all {
		if c.id != 0 {
			known = append(known, c)
		}
	}
	return known
}

// foundingID returns the ID that the cluster will have if it is being bootstrapped, or zero if unknown. Any other ID
// comes from older data on the volumes.
func (s State) foundingID() ID {
	if !s.founding() {
		return 0
	}
	return s.FoundingID
}

func terminating(s State) (Decision, bool) {
	going := append(s.goingRemains(), s.Objects.Terminating...)
	if len(going) == 0 {
		return Decision{}, false
	}
	return wait(recheck, "being deleted: %s", sentence(going))
}

// goingRemains returns the pods and volumes being deleted, if nothing else remains and no members are recorded. Once
// they are gone, there may be no trace of the cluster.
func (s State) goingRemains() []string {
	var going []string
	for _, r := range s.Replicas {
		switch {
		case s.recorded() || r.stays():
			return nil
		case r.Pod == PodTerminating:
			going = append(going, "the pod of "+s.ReplicaName(r.Ordinal))
		case r.VolumeTerminating:
			going = append(going, "the volume of "+s.ReplicaName(r.Ordinal))
		}
	}
	return going
}

// stays reports whether the slot has a pod or a volume that is not being deleted.
func (r Replica) stays() bool {
	return r.Pod != PodAbsent && r.Pod != PodTerminating || r.VolumeUID != "" && !r.VolumeTerminating
}

func caLost(s State) (Decision, bool) {
	switch lost := sentence(s.Objects.Irreplaceable); {
	case lost == "" || s.BeginsAdoption(): // see adopt
		return Decision{}, false
	case s.mayHaveGuests():
		return block("%s. Correct the cause, or restore Secret %s from a backup. Do not stop pods: the guests need "+
			"their votes", lost, s.caSecret())
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPodThatStays):
		return wait(recheck, "%s; it will be recreated once the pods that trust it are gone", lost)
	}
	if d, spoke := s.stopForCA(); spoke {
		return d, true
	}
	remedy := "Restore it from a backup or, to get a new CA, stop all pods"
	if s.caExpired() {
		remedy = "Members and clients are rejecting new connections from each other, and restoring a backup would " +
			"not help. To get a new CA, stop all pods"
	}
	return block("%s. %s%s", sentence(s.Objects.Irreplaceable), remedy, s.howToStop())
}

func hasPodThatStays(r Replica) bool { return hasPod(r) && r.Pod != PodTerminating }

func quorumLost(s State) (Decision, bool) {
	voters := s.Membership.Voters()
	if s.Membership.MayServe() || len(voters) == 0 || s.Membership.HasQuorum() {
		return Decision{}, false
	}
	message := fmt.Sprintf("no quorum: %s, %d required; %s", s.describeResponding(), Quorum(len(voters)),
		strings.Join(s.troubles(), "; ")) + s.describeTerminatingClaims()
	if s.adoptionTakenBack() {
		return block("%s; %s", message, s.declareAdoptionAgain())
	}
	if s.awaitsUnready() {
		return wait(recheck, "%s%s", message, s.describeHindered())
	}
	kept := s.wayOutOfMarks()
	if s.mayRecover(voters) && kept == "" {
		return wait(recheck, "%s", message)
	}
	remedy := s.remedyForChecks() + s.describeHeldBack() + s.describeNotMoved() + kept + s.remedyForNodes() +
		s.describeHindered()
	if s.mayHaveGuests() {
		remedy += ". Bring the members back, or recover a guest with the tool that manages it: spec.recovery is not " +
			"possible while there are guests"
	}
	if remedy == "" {
		remedy = ". If a majority cannot be brought back, declare spec.recovery"
	}
	return block("%s%s", message, remedy)
}

// mayRecover reports whether enough voters for quorum respond or may still come up by themselves: their pods are
// starting, or Kubernetes will recreate them, and they have their recorded volumes.
func (s State) mayRecover(voters []Member) bool {
	recoverable := 0
	for _, m := range voters {
		ordinal, ours := s.namedOrdinal(m)
		_, recorded := s.Record.Member(ordinal)
		there := recorded || s.Replica(ordinal).remains()
		if m.Answers || s.Record.Hosts(m.ID) || ours && there && !s.unrecoverable(ordinal) {
			recoverable++
		}
	}
	return recoverable >= Quorum(len(voters))
}

// whatToDoWithVolumes returns what to do with the volumes if members do not come up: they may be deleted only if etcd
// has found no data on any of them.
func (s State) whatToDoWithVolumes() string {
	for _, m := range s.Record.Members {
		if r := s.Replica(m.Ordinal); !r.NoData || s.volumeLost(m.Ordinal) {
			return "Keep the volumes: their data may be intact. The pod logs show why etcd exits. If no member can " +
				"be brought back, declare spec.recovery"
		}
	}
	return "etcd does not find data on any volume. If the volumes never held data, delete the custom resource and " +
		"the volumes to bootstrap the cluster again"
}

// askToConfirmMembers blocks because too few of the recorded voters return the member list. It asks for confirmation of
// the list in git.
func (s State) askToConfirmMembers() (Decision, bool) {
	if gone := s.vanishedGuests(); len(gone) > 0 {
		return blockForVanished(gone)
	}
	return block("too few of the recorded voters return the same member list%s; nothing is changed. Bring back the "+
		"members that are not responding, and restart any member with a wrong list by running kubectl delete pod. "+
		"Members: %s%s. If they cannot be brought back, and the member list is right (%s), set the annotation "+
		"etcd.quorate.dev/confirm-members: %q in git", s.why(), s.describeReplicas(),
		s.describeTerminatingClaims(), s.describeQuorum(), s.ListToConfirm())
}

func membershipUnknown(s State) (Decision, bool) {
	switch {
	case s.Membership.Known || !s.Formed():
		return Decision{}, false
	case s.adoptionTakenBack():
		return block("%s", s.declareAdoptionAgain())
	case s.lacksGuests():
		return block("%s", abandonIsVoid)
	case s.Membership.Forbidden != "":
		return s.notAllowedToAsk()
	case s.Membership.Disputed:
		return block("members return different member lists%s, and no quorum confirms any of them; nothing is "+
			"changed. Bring back the members that are not responding, and restart any member with a wrong list by "+
			"running kubectl delete pod. Members: %s%s", s.why(), s.describeReplicas(), s.describeTerminatingClaims())
	case s.Membership.Unrecorded:
		return s.askToConfirmMembers()
	case s.Membership.Unconfirmed && len(s.strangers()) > 0:
		pronoun := itOrThem(s.strangers())
		return block("no quorum confirms the member list%s: %s. Quorate cannot query %s. Remove %s manually with "+
			"etcdctl member remove", s.why(), strings.Join(s.strangers(), "; "), pronoun, pronoun)
	case RequiredRecord(s, "").Empty():
		if kept := s.wayOutOfMarks(); kept != "" {
			return block("the cluster has formed before (%s), but none of its remaining members may be started%s",
				s.describeSigns(), kept)
		}
		return block("the cluster has formed before (%s), but its members and volumes are gone. "+
			"Restore it from a backup, or delete its custom resource to bootstrap it again", s.describeSigns())
	case s.recorded() && !s.Membership.Unconfirmed && !s.quorumMayRecover() && !s.awaitsUnready():
		return block("etcd does not return a member list%s, and too few members can recover by "+
			"themselves: "+
			"%s%s. %s%s%s%s%s%s", s.why(), s.describeReplicas(), s.describeTerminatingClaims(), s.whatToDoWithVolumes(),
			s.describeHeldBack(), s.describeNotMoved(), s.wayOutOfMarks(), s.remedyForNodes(), s.describeHindered())
	}
	return wait(recheck, "etcd does not return a member list%s; nothing is changed until it does: %s%s", s.why(),
		s.describeReplicas(), s.describeUnproven())
}
