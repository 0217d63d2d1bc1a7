package clusters

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRecovery creates a new cluster from the remains of a lost cluster on a real API server. It covers only the
// Kubernetes objects.
func TestRecovery(t *testing.T) {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.makePods()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, pod := range []string{"a-0", "a-1", "a-2"} {
		s.say(pod, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: objects.Container, State: running}}})
	}
	s.proveVolumes()
	s.spec += ", recovery: {clusterID: c1, member: 1}"
	s.do(s.observe(), decide.Declare{}, true)
	s.decided("MembershipUnknown", "")
	for _, setting := range []string{"--allow-recovery", "--backup-image"} {
		if hindered := s.observe().state.Declared.Recovery.Refused; !strings.Contains(hindered, setting) {
			t.Errorf("%q, want %s", hindered, setting)
		}
		s.live.options.AllowRecovery = true
	}
	s.live.options.BackupImage = "quorate:v1"
	s.decided("MembershipUnknown", "")
	s.spec = strings.Replace(s.spec, "member: 1", "member: 1, lost: [0, 2]", 1)
	c := s.decided("Recover", "stopping all pods first")
	start := decide.StartRecovery{Ordinal: 1, Digest: c.state.Declared.Recovery.Digest}
	s.refuse(c, start, "StatefulSet a is not scaled to 0")
	s.do(c, decide.StopPods{}, true)
	c = s.decided("Recover", "once all pods are gone")
	s.refuse(c, start, "pods of default/a still exist")
	s.endPods()

	c = s.decided("Recover", "creating a new cluster from the data of a-1")
	s.refuse(c, decide.StartRecovery{Ordinal: 2, Digest: start.Digest}, "the spec now requests")
	s.do(c, start, true)
	s.do(c, start, false) // a delayed pass
	c = s.decided("Recover", "creating a new cluster from the data of a-1")
	job := c.state.Recovery.Job
	if job.ClusterID != 0xc1 || job.Ordinal != 1 || job.VolumeUID != c.state.Replica(1).VolumeUID || !c.state.Record.Recovering() {
		t.Errorf("%+v, %+v", job, c.state.Record)
	}

	// The record is lost, but the Job still shows the recovery.
	s.loseRecord()
	s.do(s.decided("ApplyObjects", "the record is lost"), decide.ApplyObjects{}, true)
	if set := s.set(); *set.Spec.Replicas != 0 {
		t.Errorf("%d replicas", *set.Spec.Replicas)
	}

	// The Job fails and is retried.
	s.endJob("a-recovery", objects.RecoverContainer, batchv1.JobFailed, "quorate: recover: it is a learner", 1)
	c = s.decided("Recover", "Job a-recovery failed: recover: it is a learner")
	s.refuse(c, decide.StopRecovery{JobUID: "another"}, "the Job has been replaced")
	s.do(c, decide.StopRecovery{JobUID: c.state.Recovery.Job.UID}, true)
	s.decided("Recover", "pods of an earlier Job still exist: a-recovery-x") // no garbage collection here
	c = s.withoutPod("a-recovery-x")
	s.do(c, start, false) // the pod exists after all
	s.deletePod("a-recovery-x")
	s.do(s.observe(), start, true)

	// The Job succeeds: the member starts only with the new data, and the other members' data is kept.
	done := time.Now().UTC().Truncate(time.Second)
	word, err := result.Recovered{
		LostClusterID: "00000000000000c1", LostMemberID: "00000000000000a1", Term: 2, Index: 308, Revision: 301, NewRevision: 1000000301,
		StartedAt: done, FinishedAt: done, ClusterID: "00000000000000c2", MemberID: "00000000000000b1",
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.endJob("a-recovery", objects.RecoverContainer, batchv1.JobComplete, string(word), 0)
	c = s.decided("Recover", "the new cluster has been created from the data of a-1")
	finish := decide.FinishRecovery{ClusterID: 0xc2, VolumeUID: c.state.Replica(1).VolumeUID}
	s.do(c, decide.FinishRecovery{ClusterID: 0xc2, VolumeUID: "another"}, false)
	s.do(c, finish, true)
	s.requireMarks("c1", "", "c1")
	s.do(c, finish, false)
	c = s.decided("ApplyObjects", "StatefulSet a")
	r := c.state.Record
	if m, _ := r.Member(1); len(r.Members) != 1 || m.Mode != decide.Sealed || m.VolumeUID != finish.VolumeUID || r.ClusterID != 0xc2 ||
		len(r.Removed) != 2 || r.Removed[0].LostCluster != 0xc1 || r.Removed[1].LostCluster != 0xc1 {
		t.Errorf("%+v", r)
	}
	s.do(c, decide.ApplyObjects{}, true)
	if set, files := s.set(), s.observe().own.Objects["ConfigMap/a-members"]; *set.Spec.Replicas != 2 || files == nil {
		t.Errorf("%d replicas", *set.Spec.Replicas)
	}
	s.refuse(c, start, "StatefulSet a is not scaled to 0") // a delayed pass

	// The record is lost too, and etcd does not respond: members do not start with the lost cluster's data.
	s.loseRecord()
	r = decide.RequiredRecord(s.observe().state, "")
	if m, _ := r.Member(1); len(r.Members) != 1 || m.Mode != decide.Sealed || len(r.Removed) != 2 || r.Removed[0].LostCluster != 0xc1 {
		t.Errorf("%+v", r)
	}
}

// TestRecoveryFromBackup creates a new cluster from a backup on a real API server, replacing a member whose claim is
// gone. It covers only the Kubernetes objects.
func TestRecoveryFromBackup(t *testing.T) {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.makePods()
	s.proveVolumes()
	s.spec += ", recovery: {clusterID: c1, member: 1, lost: [0, 1, 2], backup: {from: {volume: {claimName: backups}}, name: 20261121t180000z}}"
	s.live.options.AllowRecovery, s.live.options.BackupImage = true, "quorate:v1"
	s.do(s.observe(), decide.Declare{}, true)
	s.do(s.decided("Recover", "spec.recovery requests a new cluster from 20261121t180000z of default/a from volume://backups: stopping all pods first"), decide.StopPods{}, true)
	s.endPods()
	s.deleteClaim(1)
	before := s.decided("Recover", "in the slot of a-1; writes made after the backup are lost")
	start := decide.StartRecovery{Ordinal: 1, Digest: before.state.Declared.Recovery.Digest}
	s.do(before, start, true)
	s.do(before, start, false) // a delayed pass
	c := s.decided("Recover", "creating a new cluster from 20261121t180000z of default/a")
	s.requireMarks("c1", "", "c1") // before, only the record could distinguish the claims
	job := c.state.Recovery.Job
	if claim := s.claim(1); job.From == "" || job.VolumeUID != string(claim.UID) || c.state.Record.Recovery.VolumeUID != string(claim.UID) ||
		claim.Annotations[objects.AnnotationToken] != c.state.Record.Token || !c.state.Record.Recovery.FromBackup {
		t.Errorf("%+v for %+v, %+v", job, claim, c.state.Record.Recovery)
	}

	s.endJob("a-recovery", objects.RestoreContainer, batchv1.JobComplete, s.restoredWord(), 0)
	c = s.decided("Recover", "of cluster c1 at revision 18204: starting a-1")
	s.do(c, decide.FinishRecovery{ClusterID: 0xc2, VolumeUID: c.state.Replica(1).VolumeUID}, true)
	s.requireMarks("c1", "", "c1")
	r := s.observe().state.Record
	if m, _ := r.Member(1); len(r.Members) != 1 || m.Mode != decide.Sealed || r.ClusterID != 0xc2 || len(r.Removed) != 2 ||
		!strings.Contains(r.RestoredFrom, "18204") || !r.Uncompared {
		t.Errorf("%+v", r)
	}

	// A delayed pass does not recreate a volume that the member has since lost.
	s.deleteClaim(1)
	s.do(before, start, false)
	claims, err := s.server.Client.CoreV1().PersistentVolumeClaims("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(claims.Items) != 2 {
		t.Errorf("%v, %v", claims, err)
	}
}

// TestLostMarksOfListedMembersAreRemoved checks that the lost-cluster mark is removed from claims whose members etcd
// lists.
func TestLostMarksOfListedMembersAreRemoved(t *testing.T) {
	s := running(t)
	c := s.observe()
	ctx, release, err := c.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.markLost(ctx, decide.RecordedRecovery{ClusterID: 0xc7, Ordinal: 1}); err != nil {
		t.Fatal(err)
	}
	release()
	s.requireMarks("c7", "", "c7")
	c = s.observe() // a different member is recovered after all
	if ctx, release, err = c.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.markLost(ctx, decide.RecordedRecovery{ClusterID: 0xc7, Ordinal: 0}); err != nil {
		t.Fatal(err)
	}
	release()
	s.requireMarks("", "c7", "c7")
	c = s.observe()
	if len(c.state.WrongMarks()) > 0 {
		t.Errorf("etcd has not responded: %+v", c.state.WrongMarks())
	}
	list := decide.Membership{Known: true, ClusterID: c.state.Record.ClusterID}
	for n := range 3 {
		m, _ := c.state.Record.Member(n)
		m.Mode, m.VolumeUID = decide.Sealed, c.state.Replica(n).VolumeUID
		c.state.Record = c.state.Record.With(m)
		list.Members = append(list.Members, decide.Member{ID: decide.ID(n + 1), Name: c.state.ReplicaName(n), Started: true})
	}
	c.state.Membership = list
	s.do(c, decide.ApplyObjects{}, true)
	s.requireMarks("", "", "")
}

// requireMarks checks that the claims, by ordinal, are marked as left over from the given clusters.
func (s *stage) requireMarks(want ...string) {
	s.Helper()
	for ordinal, id := range want {
		if got := s.claim(ordinal).Annotations[objects.AnnotationLostCluster]; got != id {
			s.Errorf("the claim of a-%d is marked %q, want %q", ordinal, got, id)
		}
	}
}

// proveVolumes records the members' volumes.
func (s *stage) proveVolumes() {
	s.Helper()
	c := s.observe()
	record := c.state.Record
	for _, m := range record.Members {
		m.ID, m.VolumeUID = decide.ID(0xa0+m.Ordinal), c.state.Replica(m.Ordinal).VolumeUID
		record = record.With(m)
	}
	in, err := c.input(record)
	if err != nil {
		s.Fatal(err)
	}
	ctx, release, err := c.hold(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer release()
	if _, err := c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" }); err != nil {
		s.Fatal(err)
	}
}

// withoutPod returns the cluster as observed just before the named pod is created.
func (s *stage) withoutPod(name string) *cluster {
	s.Helper()
	pods := s.server.Client.CoreV1().Pods("default")
	pod, err := pods.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.deletePod(name)
	seen := s.observe()
	pod.UID, pod.ResourceVersion = "", ""
	if _, err := pods.Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	return seen
}

func (s *stage) loseRecord() {
	s.Helper()
	if err := s.server.Client.CoreV1().ConfigMaps("default").Delete(s.Context(), "a-members", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}
