package report_test

import (
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// The newest backup is shown with the members.
func ExampleMembers_backup() {
	s := decide.State{Name: "a", Membership: decide.Membership{Known: true, ClusterID: 0xc1}}
	s.Declared.BacksUp = true
	s.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-1", Phase: decide.JobRuns, Message: `backup: the region "eu-central-1" is wrong`}}
	none := report.Cluster{Namespace: "shop", Name: "a", State: s}
	s.Backups.Jobs = nil
	s.Backups.Last = &decide.Backup{Slot: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC), Revision: 18204, Verified: true, To: "s3://backups/etcd"}
	s.Backups.Drill = &decide.Drill{Slot: s.Backups.Last.Slot, FinishedAt: s.Backups.Last.Slot.Add(time.Hour), Seconds: 42}
	one := report.Cluster{Namespace: "shop", Name: "b", State: s, Custom: &v1alpha1.EtcdCluster{}}
	one.State.Now = s.Backups.Last.Slot.Add(2 * time.Hour)
	one.Custom.Status.DeclaredRevision = "main@sha1:c4281fbf5d8a69aec1d024a4bb4c802c20d00300"
	one.Custom.Status.DeclaredRevisionTime = &metav1.Time{Time: s.Backups.Last.Slot.AddDate(0, 0, -2)}
	_ = report.Members(os.Stdout, report.Report{Clusters: []report.Cluster{none, one}}, report.Style{})
	// Output:
	// shop/a
	//     cluster ID c1
	//     no backup yet
	//     backup Job a-backup-1 has not succeeded yet: backup: the region "eu-central-1" is wrong
	// shop/b
	//     cluster ID c1
	//     declared by c4281fb (2d2h)
	//     last backup 2026-11-22T03:00:00Z, revision 18204, verified, in s3://backups/etcd
	//     last drill at 2026-11-22T04:00:00Z: backup 2026-11-22T03:00:00Z restored in 42s
}

// A guest may have the name of a replica, but it has no pod.
func ExampleMembers_guests() {
	s := decide.State{Name: "a", Membership: decide.Membership{Known: true, ClusterID: 0xc1}}
	s.Replicas = []decide.Replica{{Pod: decide.PodReady}}
	s.Record = decide.Record{ClusterID: 0xc1, Adopted: 0xc1, Guests: []decide.ID{0x11}}
	s.Membership.Members = []decide.Member{
		{ID: 1, Name: "a-0", Started: true, Answers: true, Leader: true, Version: "3.6.16", Revision: 7},
		{ID: 0x11, Name: "a-0", Started: true, Answers: true, Version: "3.6.16", Revision: 7},
	}
	_ = report.Members(os.Stdout, report.Report{Clusters: []report.Cluster{{Namespace: "shop", Name: "a", State: s}}}, report.Style{})
	// Output:
	// shop/a
	//     cluster ID c1
	//     MEMBER  ID  ROLE    HEALTH   VERSION  REVISION  DB SIZE  IN USE  ALARMS  POD
	//     a-0     1   Leader  Healthy  3.6.16   7         0        0       -       Ready
	//     a-0     11  Voter   Healthy  3.6.16   7         0        0       -       guest
}
