package targets

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// mostRefusals is the maximum number of policy violations reported for one cluster.
const mostRefusals = 10

// refuse adds a problem to each target for every policy violation. It also checks specs that were applied earlier,
// because they may have been allowed at that time or changed manually since. It does not check orphans.
func refuse(targets []Target, owned inventory.ByCluster, desired reconcile.Desired) {
	for i := range targets {
		t := &targets[i]
		if t.leftAlone(desired) {
			continue
		}
		source, custom := t.Source, owned.Of(t.Key()).Custom
		if t.Applied == nil && custom != nil {
			source = custom.Status.DeclaredSource
		}
		t.Problems = append(t.Problems, refusalsOf(effective(t.Cluster, custom), source, desired)...)
	}
}

// effective returns a declaration without the fields that no longer have an effect.
func effective(c v1alpha1.EtcdCluster, custom *v1alpha1.EtcdCluster) v1alpha1.EtcdCluster {
	if custom != nil && inventory.ReportedClusterID(custom) != 0 {
		c.Spec.Restore = nil // the cluster has formed
	}
	return c
}

// leftAlone reports whether a target remains unchanged regardless of further problems, because it is an orphan or its
// declaration is broken.
func (t *Target) leftAlone(desired reconcile.Desired) bool {
	return t.Orphaned != "" || t.Applied == nil && len(t.Problems) > 0 && !desired.Live
}

// FlagBackupImage is the flag that sets the image for backup pods.
const FlagBackupImage = "--backup-image"

// FlagAllowRecovery is the flag that allows a run to create new clusters from the remains of lost clusters.
const FlagAllowRecovery = "--allow-recovery"

// RefuseBackups adds a problem to each target that declares backups, or is to be restored from a backup, if image is
// empty. A cluster that cannot be backed up as its spec requests is never up to date.
func RefuseBackups(targets []Target, image string, owned inventory.ByCluster, desired reconcile.Desired) {
	if image != "" || desired.Live && desired.Unread != nil {
		return
	}
	for i := range targets {
		t := &targets[i]
		if t.leftAlone(desired) {
			continue
		}
		if t.Cluster.Spec.Backup != nil {
			t.Problems = append(t.Problems, "spec.backup: this run does not set "+FlagBackupImage+
				", the Quorate image for backup pods")
		}
		if custom := owned.Of(t.Key()).Custom; t.Cluster.Spec.Restore != nil &&
			(custom == nil || inventory.ReportedClusterID(custom) == 0) {
			t.Problems = append(t.Problems, "spec.restore: this run does not set "+FlagBackupImage+
				", the Quorate image for restore pods")
		}
	}
}

// RefuseOwnAccounts adds a problem to each target whose pods would use the ServiceAccount that Quorate itself uses in
// the namespace, because anyone who can use a pod with that account has all of Quorate's rights there. userOf returns
// the user that Quorate acts as in a namespace.
func RefuseOwnAccounts(
	targets []Target, userOf func(namespace string) string, owned inventory.ByCluster, desired reconcile.Desired,
) {
	for i := range targets {
		t := &targets[i]
		name, own := strings.CutPrefix(userOf(t.Cluster.Namespace), "system:serviceaccount:"+t.Cluster.Namespace+":")
		if !own || name == "" || t.leftAlone(desired) {
			continue
		}
		for _, path := range policy.AccountFields(effective(t.Cluster, owned.Of(t.Key()).Custom).Spec, name) {
			t.Problems = append(t.Problems, fmt.Sprintf("%s: Quorate itself uses ServiceAccount %q in this namespace. "+
				"Create a separate one for backups", path, name))
		}
	}
}

// refusalsOf returns the ways in which a cluster violates the policy of its source. If the source is unknown, the
// policies of all sources that may declare clusters in the namespace must allow the cluster. In that case, the
// violations are not detailed, because the cluster may belong to a different source.
func refusalsOf(c v1alpha1.EtcdCluster, source string, desired reconcile.Desired) []string {
	if len(desired.Sources) == 0 {
		return shortened(desired.Refuses.Refusals(c.Spec))
	}
	if state, known := desired.StateOf(source); known {
		return shortened(state.Refuses.Refusals(c.Spec))
	}
	for _, state := range desired.Sources {
		refusals := state.Refuses.Refusals(c.Spec)
		if state.Namespaces.Allow(c.Namespace) && len(refusals) > 0 {
			field, _, _ := strings.Cut(refusals[0], ": ")
			return []string{fmt.Sprintf("no source of this run declared the last applied state, and at least one "+
				"source that may declare clusters in this namespace does not allow its %s. Declare the cluster, or "+
				"run with the policy of the source that declares it%s", field, flagFor(field))}
		}
	}
	return nil
}

// flagFor names the flag that allows a field, or returns "" if only the configuration file can allow it.
func flagFor(field string) string {
	if strings.HasSuffix(field, ".to") || strings.HasSuffix(field, ".from") {
		return ", such as --allow-backup-destination"
	}
	if strings.HasPrefix(field, "spec.adopt.") {
		return ", such as --allow-adoption"
	}
	return ""
}

func shortened(problems []string) []string {
	if more := len(problems) - mostRefusals; more > 0 {
		return append(problems[:mostRefusals:mostRefusals], fmt.Sprintf("and %d more", more))
	}
	return problems
}
