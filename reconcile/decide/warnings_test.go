package decide

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCertificateWarnings checks the warnings about problems that passes do not fix.
func TestCertificateWarnings(t *testing.T) {
	weak := Certificate{Secret: "s", Key: "k", CA: true, Weak: "P-224"}
	reissued := Certificate{Secret: "s", Key: "k", Weak: "P-224"}
	for what, c := range map[string]struct {
		state State
		want  []string
	}{
		"no problem":                   {State{Certificates: []Certificate{lasts("k", true, 2000*day)}}, nil},
		"a weak CA":                    {State{Certificates: []Certificate{weak}}, []string{"k in Secret s is weak (P-224)"}},
		"a weak leaf certificate":      {State{Certificates: []Certificate{reissued}}, nil},
		"the client has the root role": {State{Name: "a", ClientIsRoot: true}, []string{"Grant user a-client the permissions that they need, and delete the Secret"}},
		"a weak CA, and the root role": {State{ClientIsRoot: true, Certificates: []Certificate{weak}}, []string{"is weak", "authentication is enabled"}},
		"whatever is due":              {State{Now: noon.Add(time.Hour), Certificates: []Certificate{weak}}, []string{"is weak"}},
	} {
		if got := c.state.CertificateWarnings(); !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestQuotaBelowDatabaseSizeWarns checks the warning about a quota that a database exceeds, before members run with it.
func TestQuotaBelowDatabaseSizeWarns(t *testing.T) {
	const mebibyte = 1 << 20
	for what, c := range map[string]struct {
		quota int64
		sizes []int64
		want  []string
	}{
		"the databases are smaller":    {500 * mebibyte, []int64{399 * mebibyte, 20 << 10}, nil},
		"a database is near its quota": {500 * mebibyte, []int64{400 * mebibyte, 20 << 10}, []string{"the database of a-0 uses 400Mi of the declared etcd quota of 500Mi: if it reaches the quota"}},
		"a database is as large":       {512 * mebibyte, []int64{512 * mebibyte}, []string{"the database of a-0 uses 512Mi, but the declared etcd quota is 512Mi: etcd will reject writes"}},
		"one database is larger":       {512 * mebibyte, []int64{20 << 10, 600 * mebibyte}, []string{"the database of a-1 uses 600Mi"}},
		"the quota is not known":       {0, []int64{600 * mebibyte}, nil},
		"no member reports its size":   {512 * mebibyte, []int64{0, 0}, nil},
	} {
		s := State{Name: "a", Declared: Declared{Quota: c.quota}}
		for n, size := range c.sizes {
			s.Membership.Members = append(s.Membership.Members, Member{Name: s.ReplicaName(n), DBSize: size})
		}
		if got := s.EtcdWarnings(); !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestSpace checks that the fullest database determines how close a cluster is to its quota.
func TestSpace(t *testing.T) {
	for what, c := range map[string]struct {
		quota int64
		sizes []int64
		want  Space
		name  string
	}{
		"free":                {1000, []int64{10, 799}, SpaceFree, "a-1"},
		"near the quota":      {1000, []int64{800, 10}, SpaceNearQuota, "a-0"},
		"not yet full":        {1000, []int64{10, 949}, SpaceNearQuota, "a-1"},
		"almost full":         {1000, []int64{950, 800}, SpaceAlmostFull, "a-0"},
		"over the quota":      {1000, []int64{math.MaxInt64, 0}, SpaceAlmostFull, "a-0"},
		"one unknown size":    {1000, []int64{100, 0}, SpaceUnknown, ""},
		"full beside unknown": {1000, []int64{990, 0}, SpaceAlmostFull, "a-0"},
		"unknown sizes":       {1000, []int64{0, -1}, SpaceUnknown, ""},
		"unknown quota":       {0, []int64{800}, SpaceUnknown, ""},
		"unknown member list": {1000, nil, SpaceUnknown, ""},
	} {
		s := State{Name: "a", Declared: Declared{Quota: c.quota}}
		for n, size := range c.sizes {
			s.Membership.Members = append(s.Membership.Members, Member{Name: s.ReplicaName(n), DBSize: size})
		}
		if got, name := s.Space(); got != c.want || name != c.name {
			t.Errorf("%s: %s of %s", what, got, name)
		}
	}
}

// TestBackupWarnings checks the warnings if backups are prevented, or continue although they are no longer declared.
func TestBackupWarnings(t *testing.T) {
	dawn := time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)
	failed := BackupJob{Name: "a-backup-gen2", Phase: JobFailed, CreatedAt: dawn, Message: "verify: no"}
	stored := failed
	stored.Backup = &Backup{Job: failed.Name, StartedAt: dawn}
	for _, test := range []struct {
		state State
		want  string
	}{
		{State{}, ""},
		{State{Backups: Backups{Foreign: "CronJob a-backup is there"}}, "no backups are taken: CronJob a-backup is there"},
		{State{Backups: Backups{DrillForeign: "CronJob a-drill is there"}}, "no drills are run: CronJob a-drill is there"},
		{State{Backups: Backups{DrillFailed: &DrillFailure{Job: "a-drill-1"}}}, "no drill has succeeded since Job a-drill-1 failed: no reason reported"},
		{State{Backups: Backups{Jobs: []BackupJob{failed}}}, "no backup has been taken since Job a-backup-gen2 failed: verify: no"},
		{State{Backups: Backups{Jobs: []BackupJob{stored}, Last: stored.Backup}}, "Job a-backup-gen2 stored a backup but failed afterwards: verify: no"},
		{State{Backups: Backups{Jobs: []BackupJob{failed}, Last: &Backup{StartedAt: dawn.Add(time.Second)}}}, ""},
		{State{Name: "a", Declared: Declared{Problems: []string{"p"}}, Backups: Backups{Since: dawn, To: "s3://b"}},
			"backups continue with the last applied settings, to s3://b, until the declaration takes effect. To stop them, run kubectl delete cronjob a-backup"},
		{State{Name: "a", Declared: Declared{Problems: []string{"p"}}, Backups: Backups{Since: dawn, Suspended: true}}, ""},
		{State{Name: "a", Declared: Declared{Restore: RestoreSource{Digest: "d"}}, Replicas: []Replica{{Ordinal: 0, VolumeUID: "v", Pod: PodAbsent}}},
			"spec.restore has no effect: a volume of a-0 exists, so the cluster is treated as existing. If that data is not needed, delete the cluster with its volumes and declare it again"},
		{State{Declared: Declared{Restore: RestoreSource{Digest: "d"}}, Record: Record{ClusterID: 0xc1}},
			"spec.restore has no effect: the cluster existed before spec.restore was declared"},
		{State{Declared: Declared{Restore: RestoreSource{Digest: "d"}}, Record: Record{ClusterID: 0xc1, RestoredFrom: "tuesday"}}, ""},
		{State{Declared: Declared{Adoption: AdoptionOrder{ClusterID: 0xc1}}, Record: Record{ClusterID: 0xc2}},
			"spec.adopt has no effect: the cluster existed before spec.adopt was declared"},
		{State{Declared: Declared{Adoption: AdoptionOrder{ClusterID: 0xc1}}}, ""},
		{State{Declared: Declared{Adoption: AdoptionOrder{ClusterID: 0xc1}}, Record: Record{ClusterID: 0xc1, Adopted: 0xc1}}, ""},
		{State{Declared: Declared{Adoption: AdoptionOrder{ClusterID: 0xc1}}, Record: Record{ClusterID: 0xc2, Adopted: 0xc2, Guests: []ID{1}}}, ""},
		{State{Backups: Backups{DrillDue: dawn}}, "no drill has ever succeeded, although two were due, the first at 2026-11-01T06:00:00Z"},
		{State{Backups: Backups{DrillDue: dawn, Drill: &Drill{FinishedAt: dawn.Add(-time.Hour)}}},
			"no drill has succeeded since 2026-11-01T05:00:00Z, although two were due after that, the first at 2026-11-01T06:00:00Z"},
		{State{Backups: Backups{DrillDue: dawn, Drill: &Drill{FinishedAt: dawn}}}, ""},
		{State{Name: "a", Declared: Declared{Restore: RestoreSource{Digest: "d"}}, Record: RestoringRecord("t"), Replicas: []Replica{{Ordinal: 0, VolumeUID: "v", Pod: PodAbsent}}}, ""},
	} {
		if got := strings.Join(test.state.BackupWarnings(), "; "); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestRejectedDeclarationKeepsDrills checks that drills continue if a declaration is rejected, and that there is a
// warning.
func TestRejectedDeclarationKeepsDrills(t *testing.T) {
	s := State{Name: "a", Backups: Backups{Drills: true}}
	if got := s.BackupWarnings(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	s.Declared.Problems = []string{"spec.image.repository: that is not allowed"}
	if got := s.BackupWarnings(); len(got) != 1 || !strings.Contains(got[0], "kubectl delete cronjob a-drill") {
		t.Errorf("%q", got)
	}
	s.Backups.Drills = false
	if got := s.BackupWarnings(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
