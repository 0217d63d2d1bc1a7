package clusters

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

const declaredRestore = `, replicas: 1, restore: {from: {volume: {claimName: backups}}, cluster: b/a, backup: 20261121t180000z}`

// TestRestore creates a cluster from a backup on a real API server. It covers only the Kubernetes objects. It checks
// that the member cannot start, and clients cannot reach it, before its volume is filled.
func TestRestore(t *testing.T) {
	s := newStage(t)
	s.spec += declaredRestore
	s.decided("InvalidSpec", "--backup-image")
	s.live.options.BackupImage = "quorate:v1"
	s.do(s.decided("Bootstrap", "restoring 20261121t180000z of b/a from volume://backups"), decide.Bootstrap{Replicas: 1, Restores: true}, true)
	if set, service := s.set(), s.clients(); *set.Spec.Replicas != 0 || len(service.Spec.Selector) > 0 {
		t.Errorf("%d replicas, clients use the selector %v", *set.Spec.Replicas, service.Spec.Selector)
	}

	before := s.decided("Restore", "into the volume of a-0")
	start := decide.StartRestore{Digest: before.state.Declared.Restore.Digest}
	s.refuse(before, decide.StartRestore{Digest: "of another declaration"}, "the spec now requests")
	s.do(before, start, true)
	s.do(before, start, false) // a delayed pass
	c := s.decided("Restore", "restoring 20261121t180000z of b/a")
	job := *c.state.Restore.Job
	if claim := s.claim(0); string(claim.UID) != job.VolumeUID || job.VolumeUID != c.state.Replica(0).VolumeUID || job.Digest != start.Digest ||
		claim.Annotations[objects.AnnotationToken] != c.state.Record.Token {
		t.Errorf("%+v for %+v", job, claim)
	}

	// The Job fails, and git declares a different backup.
	s.endJob("a-restore", objects.RestoreContainer, batchv1.JobFailed, `quorate: restore: the store does not contain backup 20261121t180000z`, 1)
	s.decided("Restore", "the store does not contain backup 20261121t180000z. Fix the cause")
	s.spec = strings.Replace(s.spec, "20261121t180000z", "20261120t180000z", 1)
	s.do(s.observe(), decide.Declare{}, true)
	changed := s.decided("Restore", "start again")
	s.refuse(changed, decide.StopRestore{JobUID: "another"}, "the Job has been replaced")
	s.do(changed, decide.StopRestore{JobUID: job.UID}, true)
	s.decided("Restore", "pods of an earlier Job still exist: a-restore-x")                                      // not garbage-collected
	s.do(s.withoutPod("a-restore-x"), decide.StartRestore{Digest: changed.state.Declared.Restore.Digest}, false) // the pod exists after all
	s.deletePod("a-restore-x")
	c = s.decided("Restore", "restoring 20261120t180000z")
	s.do(c, decide.StartRestore{Digest: c.state.Declared.Restore.Digest}, true)
	if again := s.observe().state.Restore.Job; again == nil || again.VolumeUID != job.VolumeUID || again.UID == job.UID {
		t.Errorf("%+v", again)
	}

	// The Job succeeds: the member starts only with that volume.
	s.endJob("a-restore", objects.RestoreContainer, batchv1.JobComplete, s.restoredWord(), 0)
	c = s.decided("Restore", "of cluster c1 at revision 18204 has been restored")
	finish := decide.Decide(c.state).Action
	s.do(c, decide.FinishRestore{VolumeUID: "another"}, false)
	s.do(c, finish, true)
	s.do(c, finish, false)
	c = s.observe()
	if m, _ := c.state.Record.Member(0); m.Mode != decide.Sealed || m.VolumeUID != job.VolumeUID || !strings.Contains(c.state.Record.RestoredFrom, "18204") {
		t.Errorf("%+v", c.state.Record)
	}
	s.do(s.decided("ApplyObjects", "StatefulSet a"), decide.ApplyObjects{}, true)
	if set, service := s.set(), s.clients(); *set.Spec.Replicas != 1 || len(service.Spec.Selector) != 0 {
		t.Errorf("%d replicas, clients use the selector %v", *set.Spec.Replicas, service.Spec.Selector)
	}
	s.refuse(c, start, "not being restored from a backup")
	s.do(changed, start, false) // a delayed pass
	if c = s.observe(); c.state.Restore.Job != nil || len(c.state.Objects.Drift) > 0 {
		t.Errorf("%+v, %q", c.state.Restore, c.state.Objects.Drift)
	}
	if want := (decide.RestoredData{ClusterID: 0xc2, MemberID: 0xa1, Revision: 1000018204}); c.state.Record.Restored != want {
		t.Errorf("the member must show %+v", c.state.Record.Restored)
	}

	// Once the first member has been shown to run with the restored data, the client Service is opened and stays open.
	s.form()
	if service := s.clients(); len(service.Spec.Selector) == 0 {
		t.Error("clients do not reach any member")
	}
	c = s.observe()
	c.state.Record.ClusterID = 0
	if in, err := c.input(c.state.Record); err != nil || !in.Leads || !in.Record.Unproven() {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestUsedClaimsAreNotCopied checks that no Job is started while the source's claims are missing or in use.
func TestUsedClaimsAreNotCopied(t *testing.T) {
	s := newStage(t)
	s.spec += `, replicas: 1, restore: {from: {claims: {clusterID: c0, names: [data-a-0, data-old-1]}}}`
	s.live.options.BackupImage = "quorate:v1"
	s.do(s.decided("Bootstrap", "restoring the data of cluster c0 in claims data-a-0 and data-old-1"), decide.Bootstrap{Replicas: 1, Restores: true}, true)
	refused := func(why string) {
		t.Helper()
		c := s.observe()
		outcome, err := c.Do(t.Context(), decide.StartRestore{Digest: c.state.Declared.Restore.Digest})
		if err != nil || outcome.Changed || !strings.Contains(outcome.Detail, why) {
			t.Errorf("want %q: %+v, %v", why, outcome, err)
		}
	}
	refused("not yet: claim data-a-0 belongs to the new cluster. Specify only the source's claims")
	s.spec = strings.Replace(s.spec, "data-a-0", "data-old-0", 1)
	s.do(s.observe(), decide.Declare{}, true)
	refused("not yet: claim data-old-0 does not exist or is being deleted")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "old-1", Namespace: "default"}, Spec: simplePod().Spec}
	for _, name := range []string{"data-old-0", "data-old-1"} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		if _, err := s.server.Client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-old-1"}}}}
	if _, err := s.server.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused("not yet: pod old-1 uses claim data-old-1. Stop the source, and make sure that nothing starts it again")
	if c := s.observe(); c.state.Restore.Job != nil {
		t.Errorf("%+v", c.state.Restore.Job)
	}
	s.say("old-1", corev1.PodStatus{Phase: corev1.PodSucceeded}) // an ended pod does not use its volumes
	c := s.observe()
	s.do(c, decide.StartRestore{Digest: c.state.Declared.Restore.Digest}, true)
	s.decided("Restore", "restoring the data of cluster c0 in claims data-old-0 and data-old-1")
	s.endJob("a-restore", objects.RestoreContainer, batchv1.JobComplete, s.restoredWord(), 0)
	s.decided("Restore", "the copy ") // and not a backup in a store
}

// TestUnmanagedObjectsBlockRestore checks that nothing is restored if unmanaged objects have the names of the Job and
// the claim, and that these objects are left alone.
func TestUnmanagedObjectsBlockRestore(t *testing.T) {
	s := newStage(t)
	s.spec += declaredRestore
	s.live.options.BackupImage = "quorate:v1"
	s.do(s.observe(), decide.Bootstrap{Replicas: 1, Restores: true}, true)
	early := s.observe()
	start := decide.StartRestore{Digest: early.state.Declared.Restore.Digest}
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-restore"}, Spec: batchv1.JobSpec{Template: simplePod()}}
	if _, err := s.server.Client.BatchV1().Jobs("default").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.decided("Restore", "Job a-restore exists but was not created by Quorate")
	labels := objects.Labels("a")
	labels["app.kubernetes.io/component"] = "restore"
	innocent := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "innocent", Namespace: "default", Labels: labels}, Spec: simplePod().Spec}
	if _, err := s.server.Client.CoreV1().Pods("default").Create(t.Context(), innocent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if seen := s.observe(); len(seen.own.VolumePods) != 1 || len(seen.state.Restore.Stopping) > 0 {
		t.Errorf("%d pods with the labels; it waits for %q, which does not belong to the cluster", len(seen.own.VolumePods), seen.state.Restore.Stopping)
	}
	s.do(early, start, false)
	background := metav1.DeletePropagationBackground
	if err := s.server.Client.BatchV1().Jobs("default").Delete(t.Context(), "a-restore", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	claim := s.claim(0)
	if claim.Annotations[objects.AnnotationToken] == "" {
		t.Fatalf("%+v", claim)
	}
	claim.Annotations[objects.AnnotationToken] = "of-another"
	if _, err := s.server.Client.CoreV1().PersistentVolumeClaims("default").Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.decided("ForeignObjects", "of-another")
	s.refuse(early, start, "must not be filled")
}

// TestFormedClusterIsNotRestored checks that nothing is restored into a cluster that has formed according to its
// status, because policies do not check the restore source of such a cluster. The content of the record does not
// matter, even if it names the same source.
func TestFormedClusterIsNotRestored(t *testing.T) {
	s := newStage(t)
	s.spec += declaredRestore
	s.live.options.BackupImage = "quorate:v1"
	s.do(s.observe(), decide.Bootstrap{Replicas: 1, Restores: true}, true)
	const status = "/apis/etcd.quorate.dev/v1alpha1/namespaces/default/etcdclusters/a/status"
	formed := []byte(`{"status":{"clusterID":"00000000000000c1"}}`)
	if err := s.server.Client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(status).Body(formed).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{
		`token: t\nmembers: [{ordinal: 0, mode: Restoring}]\nremoved: [{ordinal: 1, lostCluster: \"c1\"}]`,
		`token: t\nremoved: [{ordinal: 1, lostCluster: \"c1\"}]`,
		`token: t\nmembers: [{ordinal: 0, mode: Restoring}]\nrecovery: {clusterID: \"c1\", ordinal: 0, volumeUID: v0}`,
	} {
		s.edit("ConfigMap", "a-members", `{"data":{"record.yaml":"`+record+`"}}`)
		seen := s.observe().state
		if len(seen.Record.Removed) == 0 && seen.Record.Recovery.ClusterID == 0 {
			t.Fatalf("%s is not read: %+v", record, seen.Record)
		}
		if stands := decide.RequiredRecord(seen, "new"); !seen.Formed() || stands.ClusterID != 0xc1 || stands.Restoring() {
			t.Errorf("%s: treated as %+v", record, stands)
		}
	}
}

func (s *stage) clients() *corev1.Service {
	s.Helper()
	service, err := s.server.Client.CoreV1().Services("default").Get(s.Context(), "a-client", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return service
}

func (s *stage) claim(ordinal int) *corev1.PersistentVolumeClaim {
	s.Helper()
	claim, err := s.server.Client.CoreV1().PersistentVolumeClaims("default").Get(s.Context(), objects.VolumeClaimName("a", ordinal), metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return claim
}

// restoredWord returns the termination message of a pod that has restored a backup of cluster c1 into cluster c2.
func (s *stage) restoredWord() string {
	s.Helper()
	done := time.Now().UTC().Truncate(time.Second)
	word, err := result.Restored{
		Slot: done.Add(-time.Hour), Data: done.Add(-time.Hour).Format("20060102t150405z") + "-18204-9c4bbfd4.db.zst", SourceClusterID: "00000000000000c1",
		Revision: 18204, NewRevision: 1000018204, Bytes: 77856, SHA256: strings.Repeat("a", 64), StartedAt: done, FinishedAt: done,
		ClusterID: "00000000000000c2", MemberID: "00000000000000a1",
	}.Encode()
	if err != nil {
		s.Fatal(err)
	}
	return string(word)
}

// deleteClaim deletes an unused claim, as Kubernetes does.
func (s *stage) deleteClaim(ordinal int) {
	s.Helper()
	claims, claim := s.server.Client.CoreV1().PersistentVolumeClaims("default"), s.claim(ordinal)
	claim.Finalizers = nil
	_, err := claims.Update(s.Context(), claim, metav1.UpdateOptions{})
	if err == nil {
		err = claims.Delete(s.Context(), claim.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// endJob creates the pod of a Job, as Kubernetes does, and ends both with the given result.
func (s *stage) endJob(name, container string, how batchv1.JobConditionType, words string, code int32) {
	s.Helper()
	jobs := s.server.Client.BatchV1().Jobs("default")
	job, err := jobs.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name+"-x", "default"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if _, err := s.server.Client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: words}}
	phase := corev1.PodRunning // of a failed Job, whose pod is only being stopped
	if how == batchv1.JobComplete {
		phase = corev1.PodSucceeded
	}
	s.say(pod.Name, corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: container, State: ended}}})
	now := metav1.Now()
	early := metav1.NewTime(now.Add(-time.Minute))
	job.Status.StartTime = &early
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	before := batchv1.JobFailureTarget
	if how == batchv1.JobComplete {
		before, job.Status.CompletionTime, job.Status.Succeeded = batchv1.JobSuccessCriteriaMet, &now, 1
	}
	for _, condition := range []batchv1.JobConditionType{before, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if _, err := jobs.UpdateStatus(s.Context(), job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) deletePod(name string) {
	s.Helper()
	now := int64(0)
	if err := s.server.Client.CoreV1().Pods("default").Delete(s.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		s.Fatal(err)
	}
}

// TestLeftoverRecoveryDoesNotDelayRestore checks that a leftover spec.recovery does not delay stopping a restore that
// git has changed, because the restore Job's pod is not a recovery pod.
func TestLeftoverRecoveryDoesNotDelayRestore(t *testing.T) {
	s := newStage(t)
	s.spec += declaredRestore + ", recovery: {clusterID: c1, member: 1, lost: [0, 2]}"
	s.live.options.BackupImage, s.live.options.AllowRecovery = "quorate:v1", true
	s.do(s.decided("Bootstrap", "restoring 20261121t180000z"), decide.Bootstrap{Replicas: 1, Restores: true}, true)
	before := s.decided("Restore", "into the volume of a-0")
	s.do(before, decide.StartRestore{Digest: before.state.Declared.Restore.Digest}, true)
	job, err := s.server.Client.BatchV1().Jobs("default").Get(s.Context(), "a-restore", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name = "a-restore-x"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if _, err := s.server.Client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.spec = strings.Replace(s.spec, "20261121t180000z", "20261120t180000z", 1)
	s.do(s.observe(), decide.Declare{}, true)
	if d := decide.Decide(s.observe().state); decide.KindOf(d.Action) != "StopRestore" {
		t.Errorf("got %s", d)
	}

	// The leftover spec.recovery does not delay rewriting a lost record either.
	if err := s.server.Client.CoreV1().ConfigMaps("default").Delete(s.Context(), "a-members", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.decided("ApplyObjects", "the record is lost while a-0 is being restored")
}
