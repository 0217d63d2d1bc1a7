package targets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Declared returns the declaration in the form that the rules use.
func (t Target) Declared() decide.Declared {
	spec := t.Cluster.Spec
	d := decide.Declared{
		Version:   spec.Version,
		Suspended: spec.Suspend,
		Lifecycle: decide.Lifecycle(spec.Lifecycle),
		SpecHash:  objects.SpecHash(&t.Cluster),
		Storage:   DescribeStorage(spec.Storage),
		Quota:     objects.ApproximateBytes(spec.Etcd.Quota),
		Retention: decide.Retention(spec.Storage.Retention),
		Orphaned:  t.Orphaned, RenamedFrom: t.RenamedFrom,
		Problems:         t.Problems,
		ConfirmedMembers: strings.TrimSpace(t.Cluster.Annotations[v1alpha1.AnnotationConfirmMembers]),
	}
	d.Defragmentation = objects.DefragmentationOf(&t.Cluster)
	d.RecoversSpace = spec.Etcd.OnNoSpace == v1alpha1.NoSpaceRecover
	d.CorruptionCheck = corruptionCheck(spec.Etcd)
	if spec.ReplaceAfter != nil {
		// Declarations are validated when they are read. If the duration is invalid, members are never replaced.
		d.ReplaceAfter, _ = time.ParseDuration(string(*spec.ReplaceAfter))
	}
	if b := spec.Backup; b != nil {
		d.BacksUp, d.VerifiesBackups = !b.Suspend, objects.VerifiesBackups(b)
		d.BackupTo = printable.Line(b.To.Place())
		d.BackupDeadline = objects.BackupDeadline(b)
		d.BacksUpBeforeUpgrade = slices.Contains(b.Before, v1alpha1.BeforeUpgrade)
		d.BacksUpBeforeDeletion = slices.Contains(b.Before, v1alpha1.BeforeDeletion)
	}
	d.Restore = objects.RestoreOf(&t.Cluster)
	d.Recovery = objects.RecoveryOf(&t.Cluster)
	d.Adoption = objects.AdoptionOf(&t.Cluster)
	if spec.Replicas != nil {
		d.Replicas = int(*spec.Replicas)
	}
	return d
}

// defaultCorruptionCheck is the maximum time between two comparisons of the members' data if git does not declare one.
const defaultCorruptionCheck = 24 * time.Hour

// corruptionCheck returns the declared maximum time between two comparisons of the members' data.
func corruptionCheck(etcd v1alpha1.EtcdOptions) time.Duration {
	if etcd.CorruptionCheck == nil {
		return defaultCorruptionCheck
	}
	declared, err := time.ParseDuration(string(*etcd.CorruptionCheck))
	if err != nil { // declarations are validated when they are read
		return defaultCorruptionCheck
	}
	return declared
}

// Digest returns a digest of the whole spec and of the run's settings that affect the cluster's objects.
func (t Target) Digest(settings ...string) string {
	text, err := json.Marshal(struct {
		Spec     v1alpha1.EtcdClusterSpec
		Settings []string
	}{t.Cluster.Spec, settings})
	if err != nil {
		panic(fmt.Sprintf("encode the spec: %v", err)) // plain data can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// DescribeStorage returns the size and class of volumes.
func DescribeStorage(storage v1alpha1.StorageSpec) string {
	size := objects.NormalSize(storage.Size)
	if storage.StorageClassName == nil {
		return size.String()
	}
	return size.String() + " of class " + *storage.StorageClassName
}
