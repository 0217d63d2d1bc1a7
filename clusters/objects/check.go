package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"quorate.dev/quorate/clusters/schedule"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Check returns the problems with a spec that the EtcdCluster definition cannot detect.
func Check(spec v1alpha1.EtcdClusterSpec, namespace, name string) []string {
	return slices.Concat(CheckOptions(spec), checkDefragmentation(spec, namespace, name),
		checkBackup(spec, namespace, name))
}

// checkBackup returns the problems with spec.backup and spec.restore that the EtcdCluster definition cannot detect. It
// needs the cluster's name because the schedule may depend on it.
func checkBackup(spec v1alpha1.EtcdClusterSpec, namespace, name string) []string {
	problems := checkRestore(spec.Restore)
	if spec.Backup == nil {
		return problems
	}
	key := namespace + "/" + name
	problems = append(problems, checkSchedule("spec.backup", spec.Backup.Schedule, spec.Backup.TimeZone, key)...)
	if drill := spec.Backup.Drill; drill != nil {
		if _, err := schedule.Parse(drill.Schedule, "Etc/UTC", key); err != nil {
			problems = append(problems, fmt.Sprintf("spec.backup.drill.schedule: %v", err))
		}
	}
	return append(problems, checkRecipients(spec.Backup.Recipients)...)
}

// checkSchedule returns the problems with the fields schedule and timeZone of a parent field. It checks them
// separately, so that problems with both are reported.
func checkSchedule(parent, expression, timeZone, key string) (problems []string) {
	if _, err := schedule.Parse(expression, "Etc/UTC", key); err != nil {
		problems = append(problems, fmt.Sprintf("%s.schedule: %v", parent, err))
	}
	if err := schedule.CheckTimeZone(timeZone); err != nil {
		problems = append(problems, fmt.Sprintf("%s.timeZone: %v", parent, err))
	}
	return problems
}

func checkRestore(r *v1alpha1.RestoreSpec) []string {
	if r == nil || r.Backup == "" {
		return nil
	}
	if _, err := time.Parse(decide.SlotLayout, r.Backup); err != nil {
		return []string{fmt.Sprintf("spec.restore.backup: must be the time of a backup, not %q. To list backups, "+
			"run quorate backups list",
			r.Backup)}
	}
	return nil
}

// checkRecipients checks that each recipient is valid, and that age can encrypt to all of them together.
func checkRecipients(declared []v1alpha1.BackupRecipient) []string {
	var problems []string
	var hybrid, classic int
	for i, text := range declared {
		recipient, err := parseRecipient(string(text))
		switch recipient.(type) {
		case nil:
			problems = append(problems, fmt.Sprintf("spec.backup.recipients[%d]: %v", i, err))
		case *age.HybridRecipient:
			hybrid++
		default:
			classic++
		}
	}
	if hybrid > 0 && classic > 0 {
		problems = append(problems, "spec.backup.recipients: age does not encrypt to post-quantum keys (age1pq1…) "+
			"together with other keys, which would defeat their protection")
	}
	return problems
}

// parseRecipient parses a recipient in the same way as the --recipient flag.
func parseRecipient(text string) (age.Recipient, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("must be a single age public key, such as age1…, on one line")
	}
	recipients, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil || len(recipients) != 1 {
		return nil, errors.New("must be a complete age public key, as printed by age-keygen -y")
	}
	return recipients[0], nil
}
