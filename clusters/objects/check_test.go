package objects

import (
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestCheckRestore checks that the name of a backup must be a valid time.
func TestCheckRestore(t *testing.T) {
	for backup, want := range map[string]int{"": 0, "20261121t180000z": 0, "20269999t999999z": 1, "20260230t000000z": 1} {
		got := checkBackup(v1alpha1.EtcdClusterSpec{Restore: &v1alpha1.RestoreSpec{Backup: backup}}, "prod", "a")
		if len(got) != want {
			t.Errorf("%q: %q", backup, got)
		}
	}
}

func TestCheckBackup(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	quantum, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	key, pq := v1alpha1.BackupRecipient(identity.Recipient().String()), v1alpha1.BackupRecipient(quantum.Recipient().String())
	const ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN a@b"
	for _, test := range []struct {
		backup v1alpha1.BackupSpec
		want   []string
	}{
		{v1alpha1.BackupSpec{Schedule: "H * * * *", TimeZone: "Europe/Berlin"}, nil},
		{v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC", Recipients: []v1alpha1.BackupRecipient{key}}, nil},
		{v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC", Recipients: []v1alpha1.BackupRecipient{pq}}, nil},
		{v1alpha1.BackupSpec{Schedule: "0 0 31 2 *", TimeZone: "Europe/Atlantis"}, []string{
			`spec.backup.schedule: "0 0 31 2 *" never matches`, `spec.backup.timeZone: "Europe/Atlantis": the IANA database does not contain`}},
		{v1alpha1.BackupSpec{Schedule: "H/2 * * * *", TimeZone: "Local"}, []string{
			`spec.backup.schedule: "H/2": H may only replace the whole minute`, `spec.backup.timeZone: "Local" is not an IANA time zone`}},
		{v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC", Recipients: []v1alpha1.BackupRecipient{key, key[:60], ssh, "", "# a", key + "\n" + key,
			v1alpha1.BackupRecipient(identity.String())}}, []string{
			`spec.backup.recipients[1]: must be a complete age public key`, `spec.backup.recipients[2]: must be a complete age public key`, `spec.backup.recipients[3]: must be a complete age public key`,
			`spec.backup.recipients[4]: must be a complete age public key`, `spec.backup.recipients[5]: must be a single age public key`, `spec.backup.recipients[6]: must be a complete age public key`}},
		{v1alpha1.BackupSpec{Schedule: "@daily", TimeZone: "Etc/UTC", Recipients: []v1alpha1.BackupRecipient{key, pq}}, []string{`spec.backup.recipients: age does not encrypt to post-quantum`}},
	} {
		got := checkBackup(v1alpha1.EtcdClusterSpec{Backup: &test.backup}, "prod", "a")
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%+v: %q, want %q", test.backup, got, test.want)
		}
		if strings.Contains(strings.Join(got, ""), "SECRET") {
			t.Errorf("a message shows an identity: %q", got)
		}
	}
	if got := checkBackup(v1alpha1.EtcdClusterSpec{}, "prod", "a"); got != nil {
		t.Error(got)
	}
}
