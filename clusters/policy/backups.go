package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"quorate.dev/quorate/clusters/schedule"
	"quorate.dev/quorate/clusters/v1alpha1"
)

var keysOfKMS = regexp.MustCompile(`^[A-Za-z0-9:/_*-]+$`)

// checkBackup checks a pattern of one of the kinds for backups.
func (k Kind) checkBackup(pattern string) error {
	switch k { //nolint:exhaustive // Check has the others
	case ServiceAccounts:
		if !classPattern.MatchString(pattern) {
			return errors.New("expected a ServiceAccount name, such as backup-*; * matches any characters")
		}
	case KMSKeys:
		if !keysOfKMS.MatchString(pattern) {
			return errors.New("expected the ID, ARN or alias of a key, such as alias/shop-*; * matches any characters")
		}
	case LockTimes:
		if d, err := time.ParseDuration(pattern); err != nil || d <= 0 {
			return errors.New("expected a maximum time, such as 720h")
		}
	case BackupsPerDay:
		if n, err := strconv.Atoi(pattern); err != nil || n <= 0 {
			return errors.New("expected a maximum number, such as 24")
		}
	}
	return nil
}

// serviceAccounts refuses ServiceAccounts that are not allowed, and pods that would use the credentials of their node.
// All pods on a node may share these credentials, and their rights have nothing to do with the source.
func (r *refusals) serviceAccounts(p Policy, spec v1alpha1.EtcdClusterSpec) {
	a := p.ServiceAccounts
	eachDestination(spec, func(path string, to v1alpha1.BackupDestination) {
		name := to.ServiceAccountName
		switch {
		case name != "":
			if !a.allows(func(pattern string) bool { return matchesReserved(ownAccounts, pattern, name) }) {
				r.refuse(path+".serviceAccountName", quoted(name), ServiceAccounts, a)
			}
		case usesNode(to) && !a.allows(func(string) bool { return false }):
			r.refuse(path, "using the node's credentials, without secretName or serviceAccountName,",
				ServiceAccounts, a)
		}
	})
}

// AccountFields returns the paths of the fields that name the given ServiceAccount.
func AccountFields(spec v1alpha1.EtcdClusterSpec, name string) (paths []string) {
	eachDestination(spec, func(path string, to v1alpha1.BackupDestination) {
		if to.ServiceAccountName == name {
			paths = append(paths, path+".serviceAccountName")
		}
	})
	return paths
}

// usesNode reports whether no credentials are specified, so that client libraries would ask the node's metadata
// service.
func usesNode(to v1alpha1.BackupDestination) bool {
	return to.SecretName == "" && to.ServiceAccountName == "" && (to.S3 != nil || to.GCS != nil || to.Azure != nil)
}

func (r *refusals) kmsKeys(p Policy, spec v1alpha1.EtcdClusterSpec) {
	eachDestination(spec, func(path string, to v1alpha1.BackupDestination) {
		if to.S3 == nil || to.S3.KMSKey == "" {
			return
		}
		if !p.KMSKeys.allows(func(pattern string) bool { return matches(pattern, to.S3.KMSKey) }) {
			r.refuse(path+".s3.kmsKey", quoted(to.S3.KMSKey), KMSKeys, p.KMSKeys)
		}
	})
}

// lockTimes refuses to lock backups for longer than allowed, because locked backups cannot be deleted, whatever they
// cost.
func (r *refusals) lockTimes(p Policy, spec v1alpha1.EtcdClusterSpec) {
	eachDestination(spec, func(path string, to v1alpha1.BackupDestination) {
		if to.S3 == nil || to.S3.LockFor == "" {
			return
		}
		asked, err := time.ParseDuration(string(to.S3.LockFor))
		if !p.LockTimes.allows(func(pattern string) bool {
			longest, invalid := time.ParseDuration(pattern)
			return err == nil && invalid == nil && asked <= longest
		}) {
			r.refuse(path+".s3.lockFor", quoted(string(to.S3.LockFor)), LockTimes, p.LockTimes)
		}
	})
}

// schedules refuses backups and drills that are more frequent than allowed.
func (r *refusals) schedules(p Policy, spec v1alpha1.EtcdClusterSpec) {
	b := spec.Backup
	if b == nil {
		return
	}
	r.schedule(p, "spec.backup.schedule", b.Schedule)
	if b.Drill != nil {
		r.schedule(p, "spec.backup.drill.schedule", b.Drill.Schedule)
	}
}

func (r *refusals) schedule(p Policy, path, expression string) {
	if expression == "" {
		return
	}
	asked, what := 0, quoted(expression)
	times, err := schedule.Parse(expression, "Etc/UTC", "any/any")
	if err == nil {
		asked = times.PerDay()
		what += fmt.Sprintf(", %d a day,", asked)
	}
	if !p.BackupsPerDay.allows(func(pattern string) bool {
		most, invalid := strconv.Atoi(pattern)
		return err == nil && invalid == nil && asked <= most
	}) {
		r.refuse(path, what, BackupsPerDay, p.BackupsPerDay)
	}
}
