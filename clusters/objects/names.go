package objects

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// These are the ports on which a member listens.
const (
	ClientPort  = 2379
	PeerPort    = 2380
	MetricsPort = 2381
)

// Container is the name of the etcd container in member pods.
const Container = "etcd"

// These are Quorate's labels and annotations.
const (
	// LabelCluster, on every object, is the name of the cluster.
	LabelCluster = "etcd.quorate.dev/cluster"
	// LabelManagedBy is set on everything that Quorate creates.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "quorate"
	// Managed selects everything that Quorate creates.
	Managed = LabelManagedBy + "=" + ManagedBy
	// AnnotationToken, on volume claims, is the cluster token for which the volume was created.
	AnnotationToken = "etcd.quorate.dev/token"
	// AnnotationSpecHash, on pods and their template, is the SpecHash of the declaration that they were built from.
	AnnotationSpecHash = "etcd.quorate.dev/spec-hash"
	// AnnotationVersion, on pods and their template, is the etcd version of the pod. On volume claims, it is the
	// version that last ran on the volume.
	AnnotationVersion = "etcd.quorate.dev/version"
	// AnnotationClusterID, on volume claims, is the ID of the cluster whose member last ran on the volume.
	AnnotationClusterID = "etcd.quorate.dev/cluster-id"
	// AnnotationStorageVersion, on volume claims, is the minor version for which the data was written. etcd 3.5 does
	// not report it.
	AnnotationStorageVersion = "etcd.quorate.dev/storage-version"
)

const (
	labelComponent  = "app.kubernetes.io/component"
	componentMember = "member"
	volumeData      = "data"
)

// VolumeClaimPrefix precedes the name of a pod in the name of its volume claim.
const VolumeClaimPrefix = volumeData + "-"

// Names are the names of the objects of one cluster, in its namespace.
type Names struct {
	// Service is the headless Service that gives each member its DNS name.
	Service string
	// ClientService is the client Service, which selects ready members.
	ClientService       string
	StatefulSet         string
	ConfigMap           string
	PodDisruptionBudget string
	// NetworkPolicy exists only if it is declared.
	NetworkPolicy string
	// BackupCronJob exists only if backups are declared.
	BackupCronJob string
	// DrillCronJob exists only if drills are declared.
	DrillCronJob string
	// RestoreJob exists only while the cluster is created from a backup.
	RestoreJob string
	// RecoveryJob exists only while a new cluster is created from the remains of a lost cluster.
	RecoveryJob string
	// The Secrets exist only if TLS is managed.
	CASecret     string
	PeerSecret   string
	ServerSecret string
	// OwnSecret is for Quorate only, and ClientSecret is for applications.
	OwnSecret    string
	ClientSecret string
}

// NamesOf returns the names of the objects of a cluster.
func NamesOf(cluster string) Names {
	return Names{
		Service:             cluster,
		ClientService:       cluster + "-client",
		StatefulSet:         cluster,
		ConfigMap:           cluster + "-members",
		PodDisruptionBudget: cluster,
		NetworkPolicy:       cluster,
		BackupCronJob:       cluster + "-backup",
		DrillCronJob:        cluster + "-drill",
		RestoreJob:          cluster + "-restore",
		RecoveryJob:         cluster + "-recovery",
		CASecret:            cluster + "-ca",
		PeerSecret:          cluster + "-peer-tls",
		ServerSecret:        cluster + "-server-tls",
		OwnSecret:           cluster + "-quorate-tls",
		ClientSecret:        cluster + "-client-tls",
	}
}

// Identity is the kind and the name of an object.
type Identity struct{ Kind, Name string }

// String returns kind and name.
func (i Identity) String() string { return i.Kind + " " + i.Name }

// Identities lists the objects that Build returns for the cluster, in the same order.
func Identities(c *v1alpha1.EtcdCluster) []Identity {
	n := NamesOf(c.Name)
	list := []Identity{{"ConfigMap", n.ConfigMap}}
	if secure(c) {
		for _, name := range []string{n.CASecret, n.PeerSecret, n.ServerSecret, n.OwnSecret, n.ClientSecret} {
			list = append(list, Identity{"Secret", name})
		}
	}
	if c.Spec.NetworkPolicy != nil {
		list = append(list, n.Policy())
	}
	list = append(list,
		Identity{"Service", n.Service},
		Identity{"Service", n.ClientService},
		Identity{"PodDisruptionBudget", n.PodDisruptionBudget},
	)
	list = append(list, Identity{"StatefulSet", n.StatefulSet})
	if c.Spec.Backup != nil {
		list = append(list, n.Backups())
	}
	if drills(c) {
		list = append(list, n.Drills())
	}
	return list
}

// Backups identifies the backup CronJob.
func (n Names) Backups() Identity { return Identity{"CronJob", n.BackupCronJob} }

// Drills identifies the CronJob that runs drills.
func (n Names) Drills() Identity { return Identity{"CronJob", n.DrillCronJob} }

// Restore identifies the Job that restores the data of the first member.
func (n Names) Restore() Identity { return Identity{"Job", n.RestoreJob} }

// Recovery identifies the Job that creates a new cluster from the remains of a lost cluster.
func (n Names) Recovery() Identity { return Identity{"Job", n.RecoveryJob} }

// Policy identifies the NetworkPolicy.
func (n Names) Policy() Identity { return Identity{"NetworkPolicy", n.NetworkPolicy} }

// PodName returns the name of the pod with the given ordinal, which is also the name of its member.
func PodName(cluster string, ordinal int) string { return fmt.Sprintf("%s-%d", cluster, ordinal) }

// VolumeClaimName returns the name of the volume claim of the pod with the given ordinal.
func VolumeClaimName(cluster string, ordinal int) string {
	return VolumeClaimPrefix + PodName(cluster, ordinal)
}

// Labels returns the labels that every object of the cluster has.
func Labels(cluster string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     "etcd",
		"app.kubernetes.io/instance": cluster,
		LabelManagedBy:               ManagedBy,
		LabelCluster:                 cluster,
	}
}

// Selector returns the labels that only member pods have. They can never change, because a StatefulSet's selector is
// immutable.
func Selector(cluster string) map[string]string {
	return map[string]string{LabelCluster: cluster, labelComponent: componentMember}
}

// SelectorString returns Selector in label selector syntax.
func SelectorString(cluster string) string { return labels.FormatLabels(Selector(cluster)) }

// MemberLabels returns the labels of member pods and their volume claims.
func MemberLabels(cluster string) map[string]string {
	all := Labels(cluster)
	maps.Copy(all, Selector(cluster))
	return all
}

// ClusterOf returns the name of the cluster to which an object with these labels belongs, or an empty string.
func ClusterOf(labels map[string]string) string { return labels[LabelCluster] }

// SelectorOf selects the objects that Quorate creates for a cluster.
func SelectorOf(cluster string) string { return Managed + "," + LabelCluster + "=" + cluster }

// Metadata holds the annotations of a live object. Missing annotations are empty.
type Metadata struct{ Token, SpecHash, Version string }

// Template returns the template of a pod, or of the new pods of a StatefulSet.
func (m Metadata) Template() Template { return Template{m.Version, m.SpecHash} }

// ReadMetadata reads the annotations of a volume claim, a pod or a pod template.
func ReadMetadata(annotations map[string]string) Metadata {
	return Metadata{
		Token:    annotations[AnnotationToken],
		SpecHash: annotations[AnnotationSpecHash],
		Version:  annotations[AnnotationVersion],
	}
}

func secure(c *v1alpha1.EtcdCluster) bool { return c.Spec.TLS.Mode != v1alpha1.TLSDisabled }
