package policy

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// to returns the destination for LOCATION[@ENDPOINT]. Its Azure account is acc.
func to(written string) v1alpha1.BackupDestination {
	location, endpoint, _ := strings.Cut(written, "@")
	scheme, rest, _ := strings.Cut(location, "://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	p, e := v1alpha1.BackupPrefix(prefix), v1alpha1.EndpointURL(endpoint)
	switch scheme {
	case "s3":
		return v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{Bucket: bucket, Prefix: p, Endpoint: e}}
	case "gs":
		return v1alpha1.BackupDestination{GCS: &v1alpha1.GCSDestination{Bucket: bucket, Prefix: p, Endpoint: e}}
	case "azblob":
		return v1alpha1.BackupDestination{Azure: &v1alpha1.AzureDestination{Container: bucket, Prefix: p, Account: "acc", Endpoint: e}}
	}
	return v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{ClaimName: bucket}}
}

func backedUp(written string) v1alpha1.EtcdClusterSpec {
	return v1alpha1.EtcdClusterSpec{Backup: &v1alpha1.BackupSpec{To: to(written)}}
}

func TestDestinations(t *testing.T) {
	const azure = "@https://acc.blob.core.windows.net"
	for _, test := range []struct{ patterns, allowed, refused string }{
		{"", "", "s3://backups volume://backups gs://backups azblob://backups"},
		{"**", "s3://backups s3://b/c@http://evil.example volume://a gs://a/b azblob://a azblob://a@https://evil.example", ""},
		{"s3://backups", "s3://backups s3://backups/a s3://backups/a/b", "s3://backups2 s3://backup gs://backups volume://backups s3://backups@https://evil.example s3://other/backups"},
		{"s3://backups/etcd", "s3://backups/etcd", "s3://backups s3://backups/etcd2 s3://backups/etcd/a s3://backups/a/etcd s3://backups2/etcd"},
		{"s3://backups/etcd*", "s3://backups/etcd s3://backups/etcd2 s3://backups/etcd/a", "s3://backups s3://backups/a"},
		{"s3://backups/*", "s3://backups/etcd s3://backups/etcd/a", "s3://backups s3://backups2/etcd"},
		{"s3://team-*", "s3://team-a s3://team-a/b", "s3://team s3://a/team-a s3://ateam-a"},
		{"s3://team-*/etcd", "s3://team-a/etcd", "s3://team-a s3://team-a/x s3://team-a/x/etcd s3://team-a@https://evil.example/etcd"},
		{"s3://*", "s3://aaa s3://aaa/b", "gs://aaa s3://aaa@https://evil.example"},
		{"s3://backups@https://minio.example.com:9000", "s3://backups@https://minio.example.com:9000 s3://backups/a@https://minio.example.com:9000",
			"s3://backups s3://backups@http://minio.example.com:9000 s3://backups@https://minio.example.com s3://backups@https://minio.example.com:9000/ s3://backups@https://minio.example.com:90001"},
		{"gs://backups/a", "gs://backups/a", "gs://backups s3://backups/a gs://backups/a@https://evil.example"},
		{"azblob://backups" + azure, "azblob://backups azblob://backups/a azblob://backups" + azure, "azblob://other azblob://backups@https://evil.example azblob://backups@https://acc.blob.core.usgovcloudapi.net"},
		{"azblob://backups@https://other.blob.core.windows.net", "", "azblob://backups"},
		{"volume://backups", "volume://backups", "volume://backup volume://backups2 s3://backups"},
		{"volume://*-backups;s3://a-b", "volume://a-backups s3://a-b/c", "volume://backups"},
	} {
		p := limited(t, BackupDestinations, test.patterns)
		for destination := range strings.FieldsSeq(test.allowed) {
			if got := p.Problems(backedUp(destination)); len(got) > 0 {
				t.Errorf("%q: %v", test.patterns, got)
			}
		}
		for destination := range strings.FieldsSeq(test.refused) {
			if got := p.Problems(backedUp(destination)); len(got) != 1 {
				t.Errorf("%q allows %q", test.patterns, destination)
			}
		}
		if got := p.Problems(v1alpha1.EtcdClusterSpec{}); len(got) != 0 {
			t.Errorf("no backups are asked for: %v", got)
		}
	}
}

// TestEtcdEndpointsMustBeAllowed checks that a copy is refused unless every endpoint of the source is allowed.
func TestEtcdEndpointsMustBeAllowed(t *testing.T) {
	copied := func(urls ...v1alpha1.EtcdEndpoint) v1alpha1.EtcdClusterSpec {
		return v1alpha1.EtcdClusterSpec{Restore: &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{Etcd: &v1alpha1.EtcdSource{Endpoints: urls}}}}
	}
	const first, second = "https://old-0.old.prod.svc:2379", "https://old-1.old.prod.svc:2379"
	for patterns, wrong := range map[string]int{
		"":                                      2,
		"s3://*":                                2,
		"**":                                    0,
		"etcd://*.old.prod.svc:2379":            0,
		"etcd://*ld-*.old.*.svc:*":              0,
		"etcd://old-0.old.prod.svc:2379":        1,
		"etcd://old-*.old.prod.svc:23790":       2,
		"etcd://*.*.prod.svc:*;volume://backup": 0,
		"etcd://*.prod.svc:2379":                2,
		"etcd://old-*.*.*.*:*":                  0,
		"etcd://old-*:2379;etcd://*.prod.svc:237": 2,
	} {
		if got := limited(t, BackupDestinations, patterns).Problems(copied(first, second)); len(got) != wrong {
			t.Errorf("%q: %q, want %d problems", patterns, got, wrong)
		}
	}
	for _, url := range []v1alpha1.EtcdEndpoint{"http://[fd00::1]:2379", "http://10.0.0.1:2379"} {
		got := (Policy{}).Problems(copied(url))
		want := `spec.restore.from.etcd.endpoints[0]: "` + string(url) + `" is not allowed; policy.backupDestinations allows none ` +
			`(--allow-backup-destination sets it); it would be allowed by etcd://` + url.Address()
		if len(got) != 1 || got[0] != want {
			t.Errorf("got  %q\nwant %q", got, want)
			continue
		}
		if got := limited(t, BackupDestinations, "etcd://"+url.Address()).Problems(copied(url)); len(got) > 0 {
			t.Errorf("the suggested pattern does not allow %s: %q", url, got)
		}
	}
	for pattern, url := range map[string]v1alpha1.EtcdEndpoint{
		"etcd://[*]:2379":             "http://[::ffff:169.254.169.254]:2379",
		"etcd://10.0.0.*:2379":        "http://10.0.0.evil.example.com:2379",
		"etcd://etcd-*:2379":          "http://etcd-0.evil.example.com:2379",
		"etcd://10.96.*.*:2379":       "http://10.96.evil.com:2379",
		"etcd://10.96.0.*:2379":       "http://10.96.0.com:2379",
		"etcd://[fd00::1:2]:2379":     "http://[fd00:1::2]:2379",
		"etcd://[fd00::1:*]:2379":     "http://[fd00:1::dead]:2379",
		"etcd://[fd00:*::1]:2379":     "http://[fd00::1:1]:2379",
		"etcd://a-*.b:2379":           "http://a-x:2379",
		"etcd://old-*.old.prod.svc:*": "http://old-0.evil.example.com.old.prod.svc:2379",
	} {
		if got := limited(t, BackupDestinations, pattern).Problems(copied(url)); len(got) != 1 {
			t.Errorf("%s allows %s", pattern, url)
		}
	}
	if got := (Policy{}).Problems(copied("http://old", "http://*:1")); len(got) != 2 || strings.Contains(got[0], "allowed by") {
		t.Errorf("%q", got)
	}
}

// TestAdoptionsMustBeAllowed checks that an adoption is refused unless every endpoint of the cluster is allowed. A
// pattern that allows copies does not suffice.
func TestAdoptionsMustBeAllowed(t *testing.T) {
	adopted := func(urls ...v1alpha1.EtcdEndpoint) v1alpha1.EtcdClusterSpec {
		return v1alpha1.EtcdClusterSpec{Adopt: &v1alpha1.AdoptionSpec{Endpoints: urls}}
	}
	const first, second = "http://old-0.old.prod.svc:2379", "http://old-1.old.prod.svc:2379"
	for patterns, wrong := range map[string]int{
		"":                                  2,
		"**":                                0,
		"*.old.prod.svc:2379":               0,
		"*ld-*.old.*.svc:*":                 0,
		"old-0.old.prod.svc:2379":           1,
		"old-*.old.prod.svc:23790":          2,
		"*.prod.svc:2379":                   2,
		"old-0.*.*.*:*;*.old.prod.svc:2379": 0,
		"old-*:2379;*.prod.svc:237":         2,
	} {
		if got := limited(t, Adoptions, patterns).Problems(adopted(first, second)); len(got) != wrong {
			t.Errorf("%q: %q, want %d problems", patterns, got, wrong)
		}
	}
	for _, p := range []Policy{{}, Policy{Images: Allowed{Limited: true, Patterns: []string{Everything}}}.Within([]string{"dev"}), limited(t, BackupDestinations, Everything)} {
		for _, url := range []v1alpha1.EtcdEndpoint{first, "http://[fd00::1]:2379", "http://10.0.0.1:2379"} {
			got := p.Refusals(adopted(url))
			want := `spec.adopt.endpoints[0]: "` + string(url) + `" is not allowed; policy.adoptions allows none; ` +
				`it would be allowed by ` + url.Address()
			if len(got) != 1 || got[0].Message != want || got[0].Path != "spec.adopt.endpoints[0]" {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if got := limited(t, Adoptions, url.Address()).Problems(adopted(url)); len(got) > 0 {
				t.Errorf("the suggested pattern does not allow %s: %q", url, got)
			}
		}
	}
	for pattern, url := range map[string]v1alpha1.EtcdEndpoint{
		"10.0.0.*:2379":        "http://10.0.0.evil.example.com:2379",
		"etcd-*:2379":          "http://etcd-0.evil.example.com:2379",
		"[fd00::1:*]:2379":     "http://[fd00:1::dead]:2379",
		"old-*.old.prod.svc:*": "http://old-0.evil.example.com.old.prod.svc:2379",
	} {
		if got := limited(t, Adoptions, pattern).Problems(adopted(url)); len(got) != 1 {
			t.Errorf("%s allows %s", pattern, url)
		}
	}
	if got := (Policy{}).Problems(adopted("http://old", "http://*:1")); len(got) != 2 || strings.Contains(got[0], "allowed by") {
		t.Errorf("%q", got)
	}
	if got := limited(t, Adoptions, Everything).Problems(backedUp("s3://backups")); len(got) != 1 {
		t.Errorf("adoptions allow backups: %q", got)
	}
}

// TestInvalidAdoptionPatternsAreRefused checks that patterns that no endpoint can match are refused.
func TestInvalidAdoptionPatternsAreRefused(t *testing.T) {
	for _, pattern := range []string{
		"", "old", "old:", "*", ":2379", "*:", "etcd://old:2379", "http://old:2379", "Old:2379", "old:2379/v3", "old:2379@https://a", "a@b:1",
		"old:2379,older:2379", "old:237900", "old:23*9", "o**:2379", "[fd00::*]", strings.Repeat("a", 260) + ":1",
	} {
		if Adoptions.Check(pattern) == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
}

// TestClaimsMustBeAllowed checks that a copy of volumes is refused unless every claim is allowed as a source. A claim that
// is allowed as a store is not allowed as a source.
func TestClaimsMustBeAllowed(t *testing.T) {
	spec := v1alpha1.EtcdClusterSpec{Restore: &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{
		Claims: &v1alpha1.ClaimsSource{Names: []v1alpha1.ClaimName{"data-old-0", "data-old-1"}}}}}
	for patterns, wrong := range map[string]int{
		"":                                   2,
		"volume://*;etcd://*:*;s3://*":       2,
		"**":                                 0,
		"claim://data-old-*":                 0,
		"claim://*":                          0,
		"claim://data-old-0":                 1,
		"claim://data-old":                   2,
		"claim://data-old-0;claim://*-old-1": 0,
	} {
		if got := limited(t, BackupDestinations, patterns).Problems(spec); len(got) != wrong {
			t.Errorf("%q: %q, want %d problems", patterns, got, wrong)
		}
	}
	want := `spec.restore.from.claims.names[1]: "data-old-1" is not allowed; policy.backupDestinations allows claim://data-old-0; ` +
		`it would be allowed by claim://data-old-1`
	if got := limited(t, BackupDestinations, "claim://data-old-0").Problems(spec); len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := limited(t, BackupDestinations, "claim://backups").Problems(backedUp("volume://backups")); len(got) != 1 {
		t.Errorf("a source is allowed as a store: %q", got)
	}
}

// TestNoDestinationIsAllowedByDefault checks that no destination is allowed without a setting, whether or not a source
// is bound to namespaces. A destination that names no store is never allowed.
func TestNoDestinationIsAllowedByDefault(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"dev"}} {
		spec := backedUp("volume://backups")
		spec.Image.Repository = DefaultImage
		if got := (Policy{}).Within(namespaces).Problems(spec); len(got) != 1 {
			t.Errorf("%v: %q", namespaces, got)
		}
	}
	if got := limited(t, BackupDestinations, "s3://*").Problems(v1alpha1.EtcdClusterSpec{Backup: &v1alpha1.BackupSpec{}}); len(got) != 1 {
		t.Errorf("no store: %q", got)
	}
	within := limited(t, BackupDestinations, "volume://*").Within([]string{"dev"}).BackupDestinations
	if !within.Limited || len(within.Patterns) != 1 {
		t.Errorf("what is allowed within namespaces: %+v", within)
	}
}

func TestDestinationMessages(t *testing.T) {
	for _, test := range []struct{ patterns, destination, want string }{
		{"", "s3://backups/etcd", `spec.backup.to: "s3://backups/etcd" is not allowed; policy.backupDestinations allows none (--allow-backup-destination sets it)`},
		{"volume://a;s3://bbb", "s3://backups@https://minio.example.com", `spec.backup.to: "s3://backups" at "https://minio.example.com" is not allowed; ` +
			`policy.backupDestinations allows volume://a, s3://bbb; it would be allowed by s3://backups@https://minio.example.com`},
		{"", "azblob://backups/a", `spec.backup.to: "azblob://backups/a" at "https://acc.blob.core.windows.net" is not allowed; ` +
			`policy.backupDestinations allows none (--allow-backup-destination sets it); it would be allowed by azblob://backups/a@https://acc.blob.core.windows.net`},
		{"", "s3://*/..@http://\x1b[31m", `spec.backup.to: "s3://*/.." at "http://\x1b[31m" is not allowed; policy.backupDestinations allows none (--allow-backup-destination sets it)`},
	} {
		got := limited(t, BackupDestinations, test.patterns).Refusals(backedUp(test.destination))
		if len(got) != 1 || got[0].Message != test.want || got[0].Path != "spec.backup.to" {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
	// The pattern that a message suggests must allow the destination.
	const destination = "s3://backups/a/b@http://10.0.0.1:9000/x"
	_, pattern, _ := strings.Cut(Policy{}.Problems(backedUp(destination))[0], "allowed by ")
	if got := limited(t, BackupDestinations, pattern).Problems(backedUp(destination)); len(got) > 0 {
		t.Error(got)
	}
}

// TestInvalidDestinationPatternsAreRefused checks that patterns that no destination can match are refused.
func TestInvalidDestinationPatternsAreRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		"backups":                            "expected LOCATION",
		"*":                                  "expected LOCATION",
		"file:///backups":                    "expected LOCATION",
		"S3://backups":                       "expected LOCATION",
		"*://backups":                        "expected LOCATION",
		"s3:/backups":                        "expected LOCATION",
		"s3://":                              "is not a valid name for a bucket",
		"s3://ab":                            "is not a valid name for a bucket",
		"s3://Backups":                       "is not a valid name for a bucket",
		"s3://a_b":                           "is not a valid name for a bucket",
		"s3://-*":                            "is not a valid name for a bucket",
		"s3://*" + strings.Repeat("a", 64):   "is not a valid name for a bucket",
		"s3://backups,s3://other":            "is not a valid name for a bucket",
		"s3://backups?region=x":              "is not a valid name for a bucket",
		"s3://b**":                           "** allows everything, and must be the whole pattern",
		"s3://backups/**":                    "** allows everything, and must be the whole pattern",
		"s3://backups/":                      "is not a valid prefix",
		"etcd://":                            "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://old-0.old.prod.svc":          "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://*.old.prod.svc":              "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://[fd00::*]":                   "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://*:":                          "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://]*[:1":                       "is not a valid name for an etcd endpoint (HOST:PORT)",
		"etcd://old-0:2379/v3":               "does not have a prefix",
		"etcd://old-0:2379@https://a":        "does not have an endpoint",
		"s3://backups//a":                    "is not a valid prefix",
		"s3://backups/a/":                    "is not a valid prefix",
		"s3://backups/../a":                  "is not a valid prefix",
		"s3://backups/*/.a":                  "is not a valid prefix",
		"s3://backups/a b":                   "is not a valid prefix",
		"s3://backups/\u0430":                "is not a valid prefix",
		"gs://backups@":                      "is not an endpoint",
		"s3://backups@minio":                 "is not an endpoint",
		"s3://backups@https://*.example.com": "is not an endpoint",
		"s3://backups@https://a@b":           "is not an endpoint",
		"s3://backups@https://a?x=y":         "is not an endpoint",
		"azblob://backups":                   "specify the endpoint of the storage account: azblob://backups@https://ACCOUNT.blob.core.windows.net",
		"azblob://*":                         "specify the endpoint of the storage account",
		"azblob://a.b@https://a":             "is not a valid name for a container",
		"volume://backups@https://a":         "does not have an endpoint",
		"volume://backups/a":                 "does not have a prefix",
		"claim://A":                          "is not a valid name for a PersistentVolumeClaim",
		"claim://prod/a":                     "does not have a prefix",
		"volume://A":                         "is not a valid name for a PersistentVolumeClaim",
	} {
		if _, err := (Allowed{}).Setting(BackupDestinations, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
	for _, setting := range []string{";", "volume://a;"} {
		if _, err := (Allowed{}).Setting(BackupDestinations, setting); err == nil {
			t.Errorf("%q is accepted", setting)
		}
	}
}

// TestBucketPatternsRespectPartitions checks that a pattern for a bucket in AWS's public partition does not allow the
// bucket with the same name in a different partition. Bucket names are unique only within a partition, so that bucket
// may have a different owner.
func TestBucketPatternsRespectPartitions(t *testing.T) {
	in := func(region, endpoint string) v1alpha1.EtcdClusterSpec {
		spec := backedUp("s3://backups@" + endpoint)
		spec.Backup.To.S3.Region = region
		return spec
	}
	const china = "https://s3.cn-north-1.amazonaws.com.cn"
	for _, test := range []struct {
		patterns, region, endpoint string
		allowed                    bool
	}{
		{"s3://backups", "", "", true},
		{"s3://backups", "eu-central-1", "", true},
		{"s3://backups", "us-iso", "", true}, // this region does not exist
		{"s3://backups", "cn-north-1", "", false},
		{"s3://backups", "fips-cn-north-1", "", false},
		{"s3://backups", "us-gov-west-1", "", false},
		{"s3://backups", "us-iso-east-1", "", false},
		{"s3://backups", "us-isob-east-1", "", false},
		{"s3://backups", "us-isof-south-1", "", false},
		{"s3://backups", "eu-isoe-west-1", "", false},
		{"s3://backups", "eusc-de-east-1", "", false},
		{"s3://backups@" + china, "cn-north-1", "", true},
		{"s3://backups@" + china, "cn-northwest-1", "", false},
		{"s3://backups@" + china, "eu-central-1", "", false},
		{"s3://backups@" + china, "cn-north-1", china, true},
		{"s3://backups@https://s3.us-gov-west-1.amazonaws.com", "us-gov-west-1", "", true},
		{"s3://backups@https://minio.example.com", "cn-north-1", "https://minio.example.com", true},
		{"s3://backups", "eu-central-1", "https://minio.example.com", false},
		{"**", "cn-north-1", "", true},
	} {
		got := limited(t, BackupDestinations, test.patterns).Problems(in(test.region, test.endpoint))
		if (len(got) == 0) != test.allowed {
			t.Errorf("%+v: %q", test, got)
		}
	}
	_, pattern, _ := strings.Cut(Policy{}.Problems(in("cn-north-1", ""))[0], "allowed by ")
	if pattern != "s3://backups@"+china {
		t.Errorf("it would be allowed by %q", pattern)
	}
}
