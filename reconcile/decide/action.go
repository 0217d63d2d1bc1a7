package decide

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Action is one change to a cluster. Actions are small, comparable values that hold no clients and print on one line.
// They contain IDs and UIDs, so that an action carried out late cannot affect a different object.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	action()
}

// Bootstrap creates all objects of a cluster that has never formed, and all its members together. It writes the record
// that RequiredRecord returns, which is the existing record, if any.
type Bootstrap struct {
	// Replicas is the initial number of members.
	Replicas int `json:"replicas"`
	// Restores is true if the cluster starts as one member with the data of a backup.
	Restores bool `json:"restores,omitempty"`
	// Adopts is the ID of the running cluster that the members will join. Then there are no initial members.
	Adopts ID `json:"adopts,omitempty"`
}

// Mode returns the mode of the initial members.
func (a Bootstrap) Mode() Mode {
	if a.Restores {
		return Restoring
	}
	return Founding
}

// Seal replaces the configuration files of members that have started, so that they never start without their data.
type Seal struct {
	ClusterID ID       `json:"clusterID"`
	Members   Ordinals `json:"members"`
}

// ApplyObjects corrects the objects of a formed cluster. It writes the record that RequiredRecord returns. It does not
// change the template of new pods: only StartRollout does.
type ApplyObjects struct{}

// RenewCertificates reissues certificates that are about to expire, from the recorded CA. It writes only their Secrets.
type RenewCertificates struct{}

// Declare writes the declaration to the custom resource and changes nothing else.
type Declare struct{}

// StopPods only scales the StatefulSet to 0. In particular, it does not change certificates.
type StopPods struct{}

// StopReplicas removes from the record the slots with volumes of a lost cluster, and deletes their pods. The volumes
// are kept.
type StopReplicas struct {
	Ordinals    Ordinals `json:"ordinals"`
	LostCluster ID       `json:"lostCluster"`
}

// StartRollout applies the declared template to new pods, and leaves running pods unchanged.
type StartRollout struct {
	Version  string `json:"version"`
	SpecHash string `json:"specHash"`
}

// EnableDowngrade makes etcd prepare its data for an older minor version, such as 3.6.
type EnableDowngrade struct {
	Version string `json:"version"`
}

// CancelDowngrade cancels EnableDowngrade.
type CancelDowngrade struct {
	Version string `json:"version"`
}

// DisarmAlarm disarms a member's alarm.
type DisarmAlarm struct {
	ID   ID        `json:"id"`
	Kind AlarmKind `json:"kind"`
}

// Defragment makes a member return the unused space in its database to the file system.
type Defragment struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
}

// DeleteObjects deletes all objects of a cluster that has no pods, except its custom resource and volumes.
type DeleteObjects struct{}

// AddLearner adds a non-voting member.
type AddLearner struct {
	Ordinal int    `json:"ordinal"`
	PeerURL string `json:"peerURL"`
}

// PromoteLearner promotes a learner to a voter.
type PromoteLearner struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
}

// RemoveMember removes a member from etcd's list.
type RemoveMember struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
	// Evidence is the evidence that the member is lost, or zero for a surplus member.
	Evidence LossEvidence `json:"because,omitzero"`
}

// MoveLeader transfers leadership to another voter.
type MoveLeader struct {
	From ID `json:"from"`
	To   ID `json:"to"`
}

// RestartReplica deletes a pod; Kubernetes recreates it on the same volume.
type RestartReplica struct {
	Ordinal int    `json:"ordinal"`
	PodUID  string `json:"podUID"`
}

// DeleteVolume deletes the claim of a replica whose member is gone.
type DeleteVolume struct {
	Ordinal   int    `json:"ordinal"`
	VolumeUID string `json:"volumeUID"`
}

// StartBackup starts the Job that takes a backup for this generation of the custom resource or, if DiffersSince is set,
// because voters were found to hold different data at that time.
type StartBackup struct {
	Generation   int64     `json:"generation,omitempty"`
	DiffersSince time.Time `json:"differsSince,omitzero"`
}

// DiscardBackup deletes a backup Job that has ended, so that another can be started.
type DiscardBackup struct {
	JobUID string `json:"jobUID"`
}

// StartRestore creates the first member's volume, if it is missing, and starts the Job that fills it from the declared
// backup.
type StartRestore struct {
	Digest string `json:"digest"`
}

// StopRestore deletes the restore Job. The volume is kept.
type StopRestore struct {
	JobUID string `json:"jobUID"`
}

// FinishRestore records that the volume has been filled. From then on, the first member starts only with its data.
type FinishRestore struct {
	VolumeUID string `json:"volumeUID"`
	From      string `json:"from"`
	// Data describes the data that the first member must report before the client Service is opened.
	Data RestoredData `json:"data,omitzero"`
}

// StartRecovery records that a new cluster is being created from a member's data, and starts the Job that creates it.
type StartRecovery struct {
	Ordinal int    `json:"ordinal"`
	Digest  string `json:"digest"`
}

// StopRecovery deletes the recovery Job. The volume is kept.
type StopRecovery struct {
	JobUID string `json:"jobUID"`
}

// FinishRecovery records that the volume holds the new cluster's data. ClusterID is zero if the Job does not report it.
// From then on, the first member starts only with this data.
type FinishRecovery struct {
	ClusterID ID     `json:"clusterID,omitempty"`
	VolumeUID string `json:"volumeUID"`
}

// KindOf returns the name of an action's kind, such as AddLearner.
func KindOf(a Action) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", a), ".")
	return kind
}

// Actions returns one action of each kind. TestEveryAction lists what each kind requires, such as a story.
func Actions() []Action {
	return []Action{
		Bootstrap{}, Seal{}, ApplyObjects{}, RenewCertificates{}, Declare{}, StopPods{}, StopReplicas{}, StartRollout{},
		EnableDowngrade{}, CancelDowngrade{}, DisarmAlarm{}, Defragment{}, StartBackup{}, DiscardBackup{},
		StartRestore{}, StopRestore{}, FinishRestore{}, StartRecovery{}, StopRecovery{}, FinishRecovery{},
		DeleteObjects{}, AddLearner{}, PromoteLearner{}, RemoveMember{}, MoveLeader{}, RestartReplica{}, DeleteVolume{},
	}
}

func (Bootstrap) action()      {}
func (Seal) action()           {}
func (ApplyObjects) action()   {}
func (Declare) action()        {}
func (StopPods) action()       {}
func (StopReplicas) action()   {}
func (AddLearner) action()     {}
func (PromoteLearner) action() {}
func (RemoveMember) action()   {}
func (MoveLeader) action()     {}
func (RestartReplica) action() {}
func (DeleteVolume) action()   {}

func (StartRollout) action()      {}
func (RenewCertificates) action() {}
func (EnableDowngrade) action()   {}
func (CancelDowngrade) action()   {}
func (DisarmAlarm) action()       {}
func (Defragment) action()        {}
func (DeleteObjects) action()     {}
func (StartBackup) action()       {}
func (DiscardBackup) action()     {}
func (StartRestore) action()      {}
func (StopRestore) action()       {}
func (FinishRestore) action()     {}
func (StartRecovery) action()     {}
func (StopRecovery) action()      {}
func (FinishRecovery) action()    {}

func (a Bootstrap) String() string {
	if a.Restores {
		return fmt.Sprintf("Bootstrap replicas=%d restores", a.Replicas)
	}
	if a.Adopts != 0 {
		return "Bootstrap adopts=" + a.Adopts.String()
	}
	return fmt.Sprintf("Bootstrap replicas=%d", a.Replicas)
}
func (a Seal) String() string {
	return fmt.Sprintf("Seal members=%s cluster=%s", a.Members, a.ClusterID)
}
func (ApplyObjects) String() string      { return "ApplyObjects" }
func (DeleteObjects) String() string     { return "DeleteObjects" }
func (RenewCertificates) String() string { return "RenewCertificates" }
func (a StartRollout) String() string {
	return fmt.Sprintf("StartRollout version=%s hash=%s", a.Version, a.SpecHash)
}
func (a EnableDowngrade) String() string { return "EnableDowngrade " + a.Version }
func (a CancelDowngrade) String() string { return "CancelDowngrade " + a.Version }
func (a DisarmAlarm) String() string     { return fmt.Sprintf("DisarmAlarm %s of %s", a.Kind, a.ID) }
func (a Defragment) String() string      { return fmt.Sprintf("Defragment %s (%s)", a.Name, a.ID) }
func (Declare) String() string           { return "Declare" }
func (StopPods) String() string          { return "StopPods" }
func (a StopReplicas) String() string {
	return fmt.Sprintf("StopReplicas %s cluster=%s", a.Ordinals, a.LostCluster)
}
func (a AddLearner) String() string     { return fmt.Sprintf("AddLearner %d %s", a.Ordinal, a.PeerURL) }
func (a PromoteLearner) String() string { return fmt.Sprintf("PromoteLearner %s (%s)", a.Name, a.ID) }
func (a RemoveMember) String() string {
	return strings.TrimSuffix(fmt.Sprintf("RemoveMember %s (%s) %s", a.Name, a.ID, a.Evidence), " ")
}
func (a MoveLeader) String() string    { return fmt.Sprintf("MoveLeader %s to %s", a.From, a.To) }
func (a StartRestore) String() string  { return "StartRestore digest=" + a.Digest }
func (a StopRestore) String() string   { return "StopRestore job=" + a.JobUID }
func (a FinishRestore) String() string { return "FinishRestore volume=" + a.VolumeUID }
func (a StartRecovery) String() string {
	return fmt.Sprintf("StartRecovery %d digest=%s", a.Ordinal, a.Digest)
}
func (a StopRecovery) String() string { return "StopRecovery job=" + a.JobUID }
func (a FinishRecovery) String() string {
	return fmt.Sprintf("FinishRecovery volume=%s cluster=%s", a.VolumeUID, a.ClusterID)
}
func (a StartBackup) String() string {
	if !a.DiffersSince.IsZero() {
		return "StartBackup differsSince=" + a.DiffersSince.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("StartBackup generation=%d", a.Generation)
}
func (a DiscardBackup) String() string { return "DiscardBackup job=" + a.JobUID }
func (a RestartReplica) String() string {
	return fmt.Sprintf("RestartReplica %d (pod %s)", a.Ordinal, a.PodUID)
}
func (a DeleteVolume) String() string {
	return fmt.Sprintf("DeleteVolume %d (%s)", a.Ordinal, a.VolumeUID)
}

// MaxOrdinals is the maximum number of ordinals in a set.
const MaxOrdinals = 64

// Ordinals is a comparable, ordered set of ordinals below MaxOrdinals.
type Ordinals uint64

// With returns the set with the ordinal added.
func (o Ordinals) With(ordinal int) Ordinals { return o | 1<<uint(ordinal) }

// Has reports whether the ordinal is in the set.
func (o Ordinals) Has(ordinal int) bool {
	return o&(1<<uint(ordinal)) != 0
}

// Len returns the number of ordinals in the set.
func (o Ordinals) Len() int { return bits.OnesCount64(uint64(o)) }

// List returns the ordinals in ascending order.
func (o Ordinals) List() []int {
	var list []int
	for n := range MaxOrdinals {
		if o.Has(n) {
			list = append(list, n)
		}
	}
	return list
}

// String returns the ordinals separated by commas.
func (o Ordinals) String() string {
	var parts []string
	for _, n := range o.List() {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

// MarshalText returns String.
func (o Ordinals) MarshalText() ([]byte, error) { return []byte(o.String()), nil }
