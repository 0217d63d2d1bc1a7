package targets

import (
	"encoding/json"
	"testing"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestBackupTo checks that a deletion requires a backup at the currently declared destination. The destination that a
// Job reports must equal the declared destination, and must be different for two stores with the same URL.
func TestBackupTo(t *testing.T) {
	s3 := func(endpoint v1alpha1.EndpointURL) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{Bucket: "backups", Endpoint: endpoint}}
	}
	azure := func(account string) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{Azure: &v1alpha1.AzureDestination{Container: "backups", Account: account}}
	}
	region := func(name string) v1alpha1.BackupDestination {
		to := s3("")
		to.S3.Region = name
		return to
	}
	at := func(account string, endpoint v1alpha1.EndpointURL) v1alpha1.BackupDestination {
		to := azure(account)
		to.Azure.Endpoint = endpoint
		return to
	}
	seen := map[string]bool{}
	for _, to := range []v1alpha1.BackupDestination{
		s3(""), s3("https://old.example.com"), s3("https://new.example.com"), azure("old"), azure("new"),
		region("cn-north-1"), region("us-gov-west-1"), region("us-iso-east-1"), region("eusc-de-east-1"),
		at("old", "https://blobs.example.com"), at("new", "https://blobs.example.com"), at("old", "https://old.blob.core.chinacloudapi.cn"),
		at("new", "http://localhost:10000/new"),
		{GCS: &v1alpha1.GCSDestination{Bucket: "backups"}}, {Volume: &v1alpha1.VolumeDestination{ClaimName: "backups"}},
	} {
		c := v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Backup: &v1alpha1.BackupSpec{To: to, Deadline: "1h"}}}
		c.Namespace, c.Name, c.UID = "ns", "a", "u1"
		declared := Target{Cluster: c}.Declared().BackupTo
		job, err := objects.BackupJob(objects.Input{Cluster: &c, BackupImage: "quorate"}, decide.StartBackup{Generation: 7})
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
			t.Errorf("%+v: declared %q, but its Job reports %q; others: %v", to, declared, said, seen)
		}
		seen[declared] = true
	}
}

// TestPlaceIdentifiesStore checks that fields that do not affect which store is used do not change the place.
// Otherwise, a deletion would wait for a backup that already exists.
func TestPlaceIdentifiesStore(t *testing.T) {
	s3 := func(region string, endpoint v1alpha1.EndpointURL) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{Bucket: "backups", Prefix: "etcd", Region: region, Endpoint: endpoint}}
	}
	azure := func(endpoint v1alpha1.EndpointURL) v1alpha1.BackupDestination {
		return v1alpha1.BackupDestination{Azure: &v1alpha1.AzureDestination{Container: "backups", Account: "acc", Endpoint: endpoint}}
	}
	for want, ones := range map[string][]v1alpha1.BackupDestination{
		"s3://backups/etcd":                                         {s3("", ""), s3("eu-central-1", ""), s3("us-east-1", ""), s3("us-iso", "")},
		"s3://backups/etcd@aws-cn":                                  {s3("cn-north-1", ""), s3("cn-northwest-1", ""), s3("fips-cn-north-1", "")},
		"s3://backups/etcd@aws-us-gov":                              {s3("us-gov-west-1", ""), s3("fips-us-gov-east-1", "")},
		"s3://backups/etcd@https://minio.example.com":               {s3("", "https://minio.example.com"), s3("cn-north-1", "https://minio.example.com")},
		"azblob://backups@https://acc.blob.core.windows.net":        {azure(""), azure("https://acc.blob.core.windows.net")},
		"azblob://backups@http://localhost:10000/acc":               {azure("http://localhost:10000/acc")},
		"azblob://backups@https://blobs.example.com of account acc": {azure("https://blobs.example.com")},
	} {
		for _, one := range ones {
			if got := one.Place(); got != want {
				t.Errorf("%+v: %q, want %q", one, got, want)
			}
		}
	}
}
