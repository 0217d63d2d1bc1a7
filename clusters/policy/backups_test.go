package policy

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// everywhere returns a spec that contains the destination in each possible place.
func everywhere(to v1alpha1.BackupDestination) v1alpha1.EtcdClusterSpec {
	return v1alpha1.EtcdClusterSpec{
		Backup: &v1alpha1.BackupSpec{To: to}, Restore: &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{BackupDestination: to}},
		Recovery: &v1alpha1.RecoverySpec{Backup: &v1alpha1.RecoveryBackup{From: to}},
	}
}

// limitedBackups allows all destinations and limits one kind of request to a setting.
func limitedBackups(t *testing.T, kind Kind, setting string) Policy {
	t.Helper()
	p := limited(t, kind, setting)
	p.BackupDestinations = Allowed{Limited: true, Patterns: []string{Everything}}
	return p
}

func TestServiceAccounts(t *testing.T) {
	for _, test := range []struct{ patterns, allowed, refused string }{
		{"", "", "backup default quorate"},
		{"**", "backup default quorate quorate-tenant", ""},
		{"backup", "backup", "backups quorate default"},
		{"*", "backup default my-quorate", "quorate quorate-tenant"},
		{"backup-*;quorate-backup", "backup-a quorate-backup", "quorate backup"},
		{"quorate-*", "quorate-backup", "quorate backup"},
	} {
		p := limitedBackups(t, ServiceAccounts, test.patterns)
		for name := range strings.FieldsSeq(test.allowed) {
			if got := p.Problems(everywhere(v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{}, ServiceAccountName: name})); len(got) > 0 {
				t.Errorf("%q: %v", test.patterns, got)
			}
		}
		for name := range strings.FieldsSeq(test.refused) {
			if got := p.Problems(everywhere(v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{}, ServiceAccountName: name})); len(got) != 3 {
				t.Errorf("%q allows %q: %q", test.patterns, name, got)
			}
		}
	}
}

// TestNodeCredentialsNeedPermission checks that a bound source may use the node's credentials, which all pods on the
// node share, only if the run allows it.
func TestNodeCredentialsNeedPermission(t *testing.T) {
	stores := map[string]v1alpha1.BackupDestination{
		"s3": {S3: &v1alpha1.S3Destination{}}, "gcs": {GCS: &v1alpha1.GCSDestination{}}, "azure": {Azure: &v1alpha1.AzureDestination{}},
	}
	for name, to := range stores {
		with, account := to, to
		with.SecretName, account.ServiceAccountName = "s", "backup"
		for _, test := range []struct {
			patterns string
			to       v1alpha1.BackupDestination
			want     int
		}{{"", to, 3}, {"backup", to, 3}, {"*", to, 3}, {"**", to, 0}, {"", with, 0}, {"backup", account, 0}} {
			if got := limitedBackups(t, ServiceAccounts, test.patterns).Problems(everywhere(test.to)); len(got) != test.want {
				t.Errorf("%s, %q: %q", name, test.patterns, got)
			}
		}
		unbound := Policy{BackupDestinations: Allowed{Limited: true, Patterns: []string{Everything}}}
		if got := unbound.Problems(everywhere(to)); len(got) != 0 {
			t.Errorf("%s, not bound: %q", name, got)
		}
	}
	if got := limitedBackups(t, ServiceAccounts, "").Problems(everywhere(v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{}})); len(got) != 0 {
		t.Errorf("a volume: %q", got)
	}
}

func TestBackupLimits(t *testing.T) {
	for _, test := range []struct {
		kind                       Kind
		patterns, allowed, refused string
	}{
		{KMSKeys, "", "", "alias/a"},
		{KMSKeys, "alias/shop-*", "alias/shop-a", "alias/shop alias/a arn:aws:kms:eu-west-1:1:alias/shop-a"},
		{KMSKeys, "arn:aws:kms:*:1:key/*", "arn:aws:kms:eu-west-1:1:key/a", "a key/a"},
		{KMSKeys, "**", "anything", ""},
		{LockTimes, "", "", "1h"},
		{LockTimes, "720h", "720h 1h 43200m", "721h 8760h 720h1ms"},
		{LockTimes, "1h;48h", "48h", "49h"},
		{LockTimes, "**", "8760h", ""},
		{BackupsPerDay, "", "", "@daily 0_0_1_1_*"},
		{BackupsPerDay, "24", "@hourly H_*_*_*_* 0,30_8-19_*_*_* H_H_*_*_*", "*_*_*_*_* 0,30_*_*_*_* */59_*_*_*_* nonsense"},
		{BackupsPerDay, "1440", "*_*_*_*_*", ""},
		{BackupsPerDay, "**", "*_*_*_*_*", ""},
	} {
		p := limitedBackups(t, test.kind, test.patterns)
		spec := func(value string) v1alpha1.EtcdClusterSpec {
			value = strings.ReplaceAll(value, "_", " ")
			s3 := &v1alpha1.S3Destination{}
			spec := everywhere(v1alpha1.BackupDestination{S3: s3})
			switch test.kind {
			case KMSKeys:
				s3.KMSKey = value
			case LockTimes:
				s3.LockFor = v1alpha1.Duration(value)
			default:
				spec.Backup.Schedule, spec.Backup.Drill = value, &v1alpha1.BackupDrill{Schedule: value}
			}
			return spec
		}
		for value := range strings.FieldsSeq(test.allowed) {
			if got := p.Problems(spec(value)); len(got) > 0 {
				t.Errorf("%s %q: %v", test.kind, test.patterns, got)
			}
		}
		for value := range strings.FieldsSeq(test.refused) {
			if got := p.Problems(spec(value)); len(got) < 2 {
				t.Errorf("%s %q allows %q: %q", test.kind, test.patterns, value, got)
			}
		}
	}
}

// TestBoundSourceBackupDefaults checks that, by default, a bound source may back up once an hour with its own
// credentials, and may not lock backups.
func TestBoundSourceBackupDefaults(t *testing.T) {
	p := Policy{BackupDestinations: Allowed{Limited: true, Patterns: []string{Everything}}}.Within([]string{"shop"})
	spec := v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: DefaultImage}, Backup: &v1alpha1.BackupSpec{
		Schedule: "H * * * *", To: v1alpha1.BackupDestination{SecretName: "s", S3: &v1alpha1.S3Destination{}},
	}}
	if got := p.Problems(spec); len(got) != 0 {
		t.Errorf("%q", got)
	}
	spec.Backup.Schedule, spec.Backup.To.SecretName = "*/30 * * * *", ""
	spec.Backup.To.S3.KMSKey, spec.Backup.To.S3.LockFor = "alias/a", "1h"
	want := strings.Join([]string{
		`spec.backup.schedule: "*/30 * * * *", 48 a day, is not allowed; policy.backupsPerDay allows 24`,
		"spec.backup.to: using the node's credentials, without secretName or serviceAccountName, is not allowed; policy.serviceAccounts allows none",
		`spec.backup.to.s3.kmsKey: "alias/a" is not allowed; policy.kmsKeys allows none`,
		`spec.backup.to.s3.lockFor: "1h" is not allowed; policy.lockFor allows none`,
	}, "\n")
	if got := strings.Join(p.Problems(spec), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	spec.Backup.To.S3, spec.Backup.To.ServiceAccountName = nil, "quorate"
	if got := p.Problems(spec); len(got) < 2 {
		t.Errorf("%q", got)
	}
}

func TestInvalidBackupPatternsAreRefused(t *testing.T) {
	for kind, invalid := range map[Kind]string{
		ServiceAccounts: "a/b A system:serviceaccount:a:b", KMSKeys: "alias/a,b alias/a@b", LockTimes: "720 0s -1h 30d *", BackupsPerDay: "0 -1 1h *",
	} {
		for pattern := range strings.FieldsSeq(invalid) {
			if err := kind.Check(pattern); err == nil {
				t.Errorf("%s accepts %q", kind, pattern)
			}
		}
	}
}
