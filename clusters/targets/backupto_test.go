package targets

import (
	"encoding/json"
	"testing"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// A deletion goes by a backup that is where git wants it now: what a Job says of where it stores is what is declared, and
// two stores of one URL are told apart by it.
func TestBackupTo(t *testing.T) {
	s3 := func(endpoint v1alpha1.EndpointURL) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{Bucket: "backups", Endpoint: endpoint}}
	}
	azure := func(account string) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{Azure: &v1alpha1.AzureDestination{Container: "backups", Account: account}}
	}
	seen := map[string]bool{}
	for _, to := range []v1alpha1.BackupDestination{
		s3(""), s3("https://old.example.com"), s3("https://new.example.com"), azure("old"), azure("new"),
		{GCS: &v1alpha1.GCSDestination{Bucket: "backups"}}, {Volume: &v1alpha1.VolumeDestination{ClaimName: "backups"}},
	} {
		c := v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Backup: &v1alpha1.BackupSpec{To: to, Deadline: "1h"}}}
		c.Namespace, c.Name, c.UID = "ns", "a", "u1"
		declared := Target{Cluster: c}.Declared().BackupTo
		job, err := objects.BackupJob(objects.Input{Cluster: &c, BackupImage: "quorate"}, 7)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(job.Apply)
		if err != nil {
			t.Fatal(err)
		}
		var made struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(text, &made); err != nil {
			t.Fatal(err)
		}
		said := made.Metadata.Annotations[objects.AnnotationBackupTo]
		if declared != said || seen[declared] {
			t.Errorf("%+v: declared %q, and its Job says %q; others: %v", to, declared, said, seen)
		}
		seen[declared] = true
	}
}
