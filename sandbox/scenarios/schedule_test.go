package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestScheduledBackups declares backups to an S3 store that only pods can reach. The first backup is taken immediately,
// and the schedule continues without passes. Old backups are deleted, and an upgrade waits for a backup. Other
// clusters, with different settings, are created from these backups. Then everything except the store is lost, and a
// commit restores the cluster. Finally, the cluster is deleted after a last backup.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadImage()
	s3 := w.serveS3Inside()
	w.createSecrets(s3)
	spec := func(to string) []string { return []string{one, "backup: " + s3.declared(to)} }
	w.declare(modern, spec("")...)

	// The administrator has not allowed backups to this destination, or set a backup image.
	if refused := w.runFrom(outside, "run").requireCode(t, exitInvalid); !refused.says("policy.backupDestinations allows none") {
		t.Errorf("%s", refused)
	}
	allowed := s3.allowed()
	if refused := w.runFrom(outside, append([]string{"run"}, allowed[:2]...)...).requireCode(t, exitInvalid); !refused.says("--backup-image") {
		t.Errorf("%s", refused)
	}
	w.convergeFrom(outside, allowed...)

	// The first backup does not wait for the schedule, unless a minute has just begun.
	formed := time.Now()
	first := w.awaitBackup(allowed, func(backupStatus) bool { return true })
	if begun := formed.Truncate(time.Minute); !strings.HasPrefix(first.Last.Job, "a-backup-gen") && first.Last.Slot.After(begun.Add(time.Minute)) {
		t.Errorf("got %+v", first)
	}
	if first.Last.To != s3.url+"@"+s3.endpoint || strings.TrimLeft(first.Last.ClusterID, "0") != w.requireOneCluster("a", 1) {
		t.Errorf("got %+v", first)
	}
	w.requireCondition("a", "BackupStale", "False", "Recent")
	w.requireCondition("a", "BackupUnverified", "False", "Verified")

	// Kubernetes starts the next backup Jobs, which are named after the scheduled minute. The first backup is deleted.
	byTime := regexp.MustCompile(`^a-backup-(\d{8})$`)
	second := w.awaitBackup(allowed, func(b backupStatus) bool { return byTime.MatchString(b.Last.Job) })
	if found := byTime.FindStringSubmatch(second.Last.Job); found == nil || fmt.Sprint(second.Last.Slot.Unix()/60) != found[1] || second.Last.Slot.Second() != 0 {
		t.Errorf("got %+v", second)
	}
	eventually(t, "one backup is left", func() error {
		if listed := w.listInside(s3); strings.Count(listed, w.namespace+"/a") != 1 || !strings.Contains(listed, "  verified\n") {
			return fmt.Errorf("the store holds %s", listed)
		}
		return nil
	})

	// A backup is restored as a drill, and the pass reports the drill's duration.
	w.kubectl("--namespace", w.namespace, "create", "job", "--from=cronjob/a-drill", "practice")
	w.awaitJob("practice")
	drilled := w.awaitBackup(allowed, func(b backupStatus) bool { return b.Drill.Job != "" })
	if d := drilled.Drill; d.Job != "practice" || d.EtcdVersion != modern || d.Uncompared != "" || d.Seconds < 1 || d.Slot.IsZero() {
		t.Errorf("got %+v, %+v", d, drilled.DrillFailed)
	}

	w.backUpTinyKeys(allowed)

	const newer = "3.7.3"
	w.restoreUnlike(s3, newer, allowed, spec("")...)

	// An upgrade waits for a backup, and does not start without one.
	s3.stop()
	w.declare(newer, spec("Upgrade")...)
	blocked := w.runFrom(outside, append([]string{"run", "--until-converged", "--timeout=3m"}, allowed...)...).requireCode(t, exitBlocked)
	if d := blocked.cluster("a").Decision; d.Rule != "WaitForBackup" || !strings.Contains(d.Message, "the required backup failed (") {
		t.Errorf("%s", blocked)
	}
	if runs := w.podVersion("a-0"); runs != modern {
		t.Errorf("etcd %s runs", runs)
	}
	s3.start()
	w.member("a", 0).put("greeting", "hello")
	w.kubectl("--namespace", w.namespace, "create", "job", "--from=cronjob/a-backup", "by-hand")
	w.awaitJob("by-hand")
	w.convergeFrom(outside, allowed...)
	if runs := w.podVersion("a-0"); runs != newer {
		t.Errorf("etcd %s runs", runs)
	}

	// CronJobs that are no longer declared are deleted, and stored backups are kept.
	w.declare(newer, one)
	w.convergeFrom(outside, allowed...)
	for _, name := range []string{"a-backup", "a-drill"} {
		if _, err := w.object(cronJobs, name); err == nil {
			t.Errorf("the CronJob %s still exists", name)
		}
	}
	if listed := w.listInside(s3); !strings.Contains(listed, w.namespace+"/a") {
		t.Errorf("the store holds %s", listed)
	}
	w.restoreAll(s3, newer, allowed)
}

// restoreUnlike creates another cluster from the newest backup of a, while a exists: with a different name,
// more members, the next minor version, and without TLS.
func (w *world) restoreUnlike(s3 *s3Inside, version string, allowed []string, spec ...string) {
	w.t.Helper()
	w.member("a", 0).put("early", "bird")
	w.kubectl("--namespace", w.namespace, "create", "job", "--from=cronjob/a-backup", "early")
	w.awaitJob("early")
	push := func(more string) {
		w.repository.push(map[string]string{
			"a.yaml": declaration("a", modern, spec...),
			"b.yaml": declaration("b", version, three, plain, more, "restore: {from: "+s3.destination()+", cluster: "+w.namespace+"/a}"),
		})
	}
	push("lifecycle: Running")
	w.convergeFrom(outside, allowed...)
	if w.requireOneCluster("b", 3) == w.requireOneCluster("a", 1) {
		w.t.Error("b is in the cluster of a")
	}
	m := w.member("b", 2)
	if got := m.get("early"); got != "bird" {
		w.t.Errorf("b has %q", got)
	}
	if now, err := m.revision(); err != nil || now < bumped {
		w.t.Errorf("b is at revision %d: %v", now, err)
	}
	push("lifecycle: Deleted\nstorage: {retention: Delete}")
	w.convergeFrom(outside, allowed...)
	w.declare(modern, spec...)
	w.convergeFrom(outside, allowed...)
}

// restoreAll deletes the namespace with everything in it, and restores the cluster, with more members, from its backup
// by following the runbook.
func (w *world) restoreAll(s3 *s3Inside, version string, allowed []string) {
	w.t.Helper()
	lost := w.requireOneCluster("a", 1)
	revision, err := w.member("a", 0).revision()
	if err != nil {
		w.t.Fatal(err)
	}
	book := w.openRunbook(s3)
	book.follow("1. Stop passes")
	book.chooseBackup(lost)
	book.follow("3. Delete the remains of the cluster")
	w.recreateNamespace()

	// The Job cannot start without the Secrets, which were deleted with the namespace. The declared etcd
	// version is also too old for the data.
	const older = "3.5.35"
	w.declare(older, three, "restore: {from: "+s3.destination()+"}")
	waiting := w.runFrom(outside, append([]string{"run", "--until-converged", "--timeout=20s"}, allowed...)...).requireCode(w.t, exitNotConverged)
	if d := waiting.cluster("a").Decision; d.Rule != "Restore" || !strings.Contains(d.Message, "describe pod a-restore-") {
		w.t.Errorf("%s", waiting)
	}
	w.createSecrets(s3)
	blocked := w.runFrom(outside, append([]string{"run", "--until-converged", "--timeout", patience.String()}, allowed...)...).requireCode(w.t, exitBlocked)
	if d := blocked.cluster("a").Decision; d.Rule != "Restore" || !strings.Contains(d.Message, older) {
		w.t.Errorf("%s", blocked)
	}
	if _, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), "a-0", metav1.GetOptions{}); err == nil {
		w.t.Error("a-0 runs on data that were not restored")
	}

	w.kubectl("--namespace", w.namespace, "delete", "secret", s3SecretName)
	w.declare(version, three)
	book.declare(version, three)
	book.follow("5. Create the namespace and the Secrets")
	book.follow("6. Resume passes")
	book.follow("7. Watch")
	// The store pads the ID with zeros.
	if checked := book.follow("8. Check"); !strings.Contains(checked, lost+" at revision ") || !strings.Contains(checked, "greeting\n") {
		w.t.Errorf("the runbook ends with\n%s", checked)
	}
	if id := w.requireOneCluster("a", 3); id == lost {
		w.t.Error("members of the cluster that is lost could join")
	}
	m := w.member("a", 2)
	if got := m.get("greeting"); got != "hello" {
		w.t.Errorf("the greeting is %q", got)
	}
	if now, err := m.revision(); err != nil || now < revision+1_000_000_000 {
		w.t.Errorf("the revision is %d, and was %d: %v", now, revision, err)
	}
	w.requireRestoredFrom(lost)
	w.deleteBackedUp(s3, version, allowed)
}

// requireRestoredFrom requires that the status of cluster a reports a restore from a backup of the lost cluster.
func (w *world) requireRestoredFrom(lost string) {
	w.t.Helper()
	live, err := w.object(etcdclusters, "a")
	if err != nil {
		w.t.Fatal(err)
	}
	if from, _, _ := unstructured.NestedString(live.Object, "status", "restoredFrom"); !strings.Contains(from, lost) {
		w.t.Errorf("the status has the source %q", from)
	}
}

// deleteBackedUp enables authentication and deletes the cluster with its data. The deletion leaves a backup that
// includes the last change. Another cluster is created from that backup.
func (w *world) deleteBackedUp(s3 *s3Inside, version string, allowed []string) {
	w.t.Helper()
	w.enableAuth()
	m := w.memberAs("a-quorate-tls", "a", 0)
	m.put("greeting", "farewell")
	last, err := m.revision()
	if err != nil {
		w.t.Fatal(err)
	}
	tombstone := declaration("a", version, three, "backup: "+s3.declared("Deletion"), "lifecycle: Deleted", "storage: {retention: Delete}")
	w.repository.push(map[string]string{"a.yaml": tombstone})
	w.convergeFrom(outside, allowed...)
	eventually(w.t, "the volumes go", func() error {
		if left := w.volumeUIDs("a"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	name, listed := "", w.listInside(s3)
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); strings.Contains(line, fmt.Sprint(last)) && len(fields) > 1 {
			name = fields[1]
		}
	}
	if name == "" {
		w.t.Fatalf("the store holds no revision %d: %s", last, listed)
	}

	// The store also has backups of the lost cluster of the same name, so the backup must be named.
	w.repository.push(map[string]string{
		"a.yaml": tombstone, // without the tombstone, c would look like a renamed cluster a
		"c.yaml": declaration("c", version, one, "restore: {from: "+s3.destination()+", cluster: "+w.namespace+"/a, backup: "+name+"}"),
	})
	w.convergeFrom(outside, allowed...)
	if got := w.memberAs("c-quorate-tls", "c", 0).get("greeting"); got != "farewell" {
		w.t.Errorf("the greeting is %q", got)
	}
	stranger := w.member("c", 0)
	ctx, cancel := stranger.ctx()
	defer cancel()
	if got, err := stranger.Client.Get(ctx, "greeting"); err == nil {
		w.t.Errorf("the user c-client, which was never created, reads %v", got.Kvs)
	}
}

// recreateNamespace deletes the namespace with everything in it, and creates it again.
func (w *world) recreateNamespace() {
	w.t.Helper()
	namespaces := w.kube.CoreV1().Namespaces()
	was, err := namespaces.Get(w.ctx(), w.namespace, metav1.GetOptions{})
	if err == nil {
		err = namespaces.Delete(w.ctx(), w.namespace, metav1.DeleteOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: was.Name, Labels: was.Labels}}
	eventually(w.t, "the namespace is gone", func() error {
		_, err := namespaces.Create(w.ctx(), again, metav1.CreateOptions{})
		return err
	})
}

// backupStatus is status.backup.
type backupStatus struct {
	Last struct {
		Job, To, ClusterID string
		Slot               time.Time
		Verified           bool
	}
	Failed struct{ Job, Message string }
	Drill  struct {
		Job, EtcdVersion, Uncompared string
		Slot                         time.Time
		Seconds                      int64
	}
	DrillFailed struct{ Job, Message string }
}

// backupsOf reads the backup status of a cluster.
func (w *world) backupsOf(name string) (backupStatus, error) {
	var status struct{ Backup backupStatus }
	live, err := w.object(etcdclusters, name)
	if err != nil {
		return status.Backup, err
	}
	text, err := json.Marshal(live.Object["status"])
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	return status.Backup, err
}

// awaitBackup runs passes until the status reports that the newest backup is verified, and wanted accepts the status.
func (w *world) awaitBackup(args []string, wanted func(backupStatus) bool) (found backupStatus) {
	w.t.Helper()
	// The next scheduled time is up to a minute away.
	err := poll(w.t.Context(), time.Minute+patience, func() error {
		w.runFrom(outside, append([]string{"run"}, args...)...)
		backups, err := w.backupsOf("a")
		if err != nil {
			return err
		}
		if found = backups; !found.Last.Verified || !wanted(found) {
			return fmt.Errorf("%+v; %s", found, w.kubectl("--namespace", w.namespace, "get", "cronjobs,jobs,pods", "--output=wide"))
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("no backup succeeds: %v", err)
	}
	return found
}

// awaitJob waits until a Job has succeeded.
func (w *world) awaitJob(name string) {
	w.t.Helper()
	eventually(w.t, "Job "+name+" succeeds", func() error { return w.succeeded(name) })
}

// succeeded returns nil if a Job has succeeded.
func (w *world) succeeded(name string) error {
	job, err := w.kube.BatchV1().Jobs(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%+v", job.Status)
}

func (w *world) podVersion(name string) string {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod.Annotations["etcd.quorate.dev/version"]
}

// s3SecretName is the Secret with the credentials of the store.
const s3SecretName = "backup-store"

// s3Inside is an S3 store in the sandbox's network.
type s3Inside struct {
	s3Server
	start, stop func()
}

// declared returns the spec for backups to this store.
func (s s3Inside) declared(before string) string {
	return fmt.Sprintf(`{schedule: "* * * * *", deadline: 1m, retention: {last: 1, minAge: 0s}, drill: {schedule: "@yearly"}, before: [%s],
    to: %s}`, before, s.destination())
}

// destination returns the store's destination as declared in a spec.
func (s s3Inside) destination() string {
	return fmt.Sprintf(`{s3: {bucket: %s, prefix: etcd, region: us-east-1, endpoint: %q, pathStyle: true, caSecretName: s3-ca}, secretName: %s}`, s3Bucket, s.endpoint, s3SecretName)
}

// allowed returns the flags that allow backups to this store.
func (s s3Inside) allowed() []string {
	return []string{"--allow-backup-destination", "s3://" + s3Bucket + "/*@" + s.endpoint, "--backup-image", deployedImage}
}

// s3Ports is the first port that stores listen on. It is not an ephemeral port, and Services do not use it.
const s3Ports = 20_000

// serveS3Inside serves a directory over the S3 protocol to pods.
func (w *world) serveS3Inside() *s3Inside {
	w.t.Helper()
	dir, address := w.t.TempDir(), w.inside()
	cert, key := writePair(w.t, dir, selfSigned(w.t, net.ParseIP(address)))
	address = net.JoinHostPort(address, strconv.Itoa(s3Ports+mathrand.IntN(1000)))
	s := &s3Inside{s3Server: s3Server{endpoint: "https://" + address, url: "s3://" + s3Bucket + "/etcd", ca: cert}}
	s.dial = func(ctx context.Context, _, address string) (net.Conn, error) { return w.dialInside(ctx, address) }
	s.start = func() {
		s.stop = startS3(w.t, exec.Command(binary("sandbox"), append([]string{"exec", "--name", w.name, "--", binary("s3")},
			s3Args(w.t, dir, cert, key, address)...)...))
		eventually(w.t, "the S3 store answers", func() error {
			conn, err := w.dialInside(w.ctx(), address)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	}
	s.start()
	w.t.Cleanup(func() { s.stop() })
	return s
}

// createSecrets creates the Secrets that pods need to reach the store.
func (w *world) createSecrets(s *s3Inside) {
	w.t.Helper()
	ca, err := os.ReadFile(s.ca)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"s3-ca":      {"ca.crt": ca},
		s3SecretName: {"AWS_ACCESS_KEY_ID": []byte(s3User), "AWS_SECRET_ACCESS_KEY": []byte(s3Secret)},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := w.kube.CoreV1().Secrets(w.namespace).Create(w.ctx(), secret, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// listInside lists the backups of cluster a in the store.
func (w *world) listInside(s *s3Inside) string {
	w.t.Helper()
	return w.quorateInside(s, "backups", "list", w.namespace+"/a", "--from", s.url, "--s3-region", "us-east-1")
}

// quorateInside runs a quorate command with access to the store in the sandbox's network, and returns its output.
func (w *world) quorateInside(s *s3Inside, args ...string) string {
	w.t.Helper()
	command := exec.Command(binary("sandbox"), append([]string{"exec", "--name", w.name, "--", binary("quorate")}, s.flags(args...)...)...)
	command.Env = append(os.Environ(), s.environment()...)
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("quorate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
