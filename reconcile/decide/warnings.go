package decide

import (
	"cmp"
	"fmt"
	"slices"
)

// Warnings returns the warnings that a report contains in addition to the decision, except about certificates.
func (s State) Warnings() []string {
	warnings := slices.Concat(s.EtcdWarnings(), s.defragmentationWarnings(), s.BackupWarnings(),
		s.RewriteWarnings())
	for i, warning := range warnings {
		warnings[i] = s.inNamespace(warning)
	}
	return warnings
}

// CertificateWarnings returns certificate problems that require manual action, except expiry.
func (s State) CertificateWarnings() []string {
	var warnings []string
	for _, c := range s.Certificates {
		if c.CA && c.Weak != "" {
			warnings = append(warnings,
				fmt.Sprintf("the key of CA certificate %s is weak (%s). Issue a new CA: see Certificates in "+
					"docs/operations.md",
					c, c.Weak))
		}
	}
	if s.ClientIsRoot {
		warnings = append(warnings,
			fmt.Sprintf("authentication is enabled in etcd, and Secret %s-client-tls gives applications root "+
				"access. Grant user %s-client the permissions that they need, and delete the Secret: see "+
				"Certificates in docs/operations.md", s.Name, s.Name))
	}
	return warnings
}

// BackupWarnings returns warnings about backups, drills, restores and recoveries, such as why no backups are taken, or
// which backup failed, if none has succeeded since.
func (s State) BackupWarnings() []string {
	b := s.Backups
	var warnings []string
	if b.Foreign != "" {
		warnings = append(warnings, "no backups are taken: "+b.Foreign)
	}
	if len(s.Declared.Problems) > 0 && !b.Since.IsZero() && !b.Suspended {
		warnings = append(warnings, fmt.Sprintf("backups continue with the last applied settings, to %s, until the "+
			"declaration takes effect. To stop them, run kubectl delete cronjob %s-backup", b.To, s.Name))
	}
	if len(s.Declared.Problems) > 0 && b.Drills {
		warnings = append(warnings, fmt.Sprintf("drills continue with the last applied etcd image and "+
			"store until the declaration takes effect. To stop them, run kubectl delete cronjob %s-drill",
			s.Name))
	}
	if s.restoreIsInert() && s.Record.RestoredFrom == "" {
		warnings = append(warnings, "spec.restore has no effect: the cluster existed before spec.restore was declared")
	}
	if s.adoptionIsInert() {
		warnings = append(warnings, "spec.adopt has no effect: the cluster existed before spec.adopt was declared")
	}
	if beside := s.instead(); beside != "" {
		warnings = append(warnings, fmt.Sprintf("spec.restore has no effect: %s, so the cluster is treated as "+
			"existing. If that data is not needed, delete the cluster with its volumes and declare it again", beside))
	}
	warnings = append(warnings, s.recoveryWarnings()...)
	warnings = append(warnings, b.drillWarnings()...)
	failed := b.NewestFailure()
	if failed == nil {
		return warnings
	}
	why := cmp.Or(failed.Message, "no reason reported")
	if failed.Backup != nil {
		return append(warnings, fmt.Sprintf("Job %s stored a backup but failed afterwards: %s", failed.Name, why))
	}
	return append(warnings, fmt.Sprintf("no backup has been taken since Job %s failed: %s", failed.Name, why))
}

// restoreIsInert reports whether a restore is declared for a cluster that has already formed.
func (s State) restoreIsInert() bool { return s.Declared.Restore.declared() && s.Record.ClusterID != 0 }

// adoptionIsInert reports whether an adoption is declared for a cluster that has formed otherwise.
func (s State) adoptionIsInert() bool {
	id, order := s.Record.ClusterID, s.Declared.Adoption
	return order.declared() && id != 0 && id != order.ClusterID && !s.adopting()
}

// MadeFrom returns the backup from which the cluster was created, and whether git still declares the restore, or "" if
// the cluster was bootstrapped without data.
func (s State) MadeFrom() string {
	if s.Record.RestoredFrom != "" && s.restoreIsInert() {
		return s.Record.RestoredFrom + "; spec.restore no longer has any effect"
	}
	return s.Record.RestoredFrom
}

// instead returns which parts of a cluster already exist if the cluster should be created from a backup but counts as
// formed because of these parts, although its ID is unknown. Otherwise, it returns "".
func (s State) instead() string {
	if !s.Declared.Restore.declared() || s.hasID() || s.Record.Restoring() || s.Record.RestoredFrom != "" ||
		s.isBeingRestored() || !s.Formed() {
		return ""
	}
	var there []string
	for _, r := range s.replicasInOrder() {
		if hasVolume(r) {
			there = append(there, "a volume of "+s.ReplicaName(r.Ordinal)+" exists")
		}
	}
	return Enumerate(there)
}
