package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLostMajority moves two of three data directories away and back, which loses no data and requires no confirmation.
// It then moves them away again, and the spec requests a new cluster from the third member's data. The new cluster has
// all of that data. Members of the lost cluster do not join it, even if their data and the record of the lost cluster
// come back. After that, two volumes are permanently lost, and the spec requests a new cluster from a backup. Finally,
// this cluster loses a volume.
func TestLostMajority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadImage()
	w.declare(modern, three)
	w.converge()
	w.member("a", 0).put("greeting", "hello")
	lost := w.requireOneCluster("a", 3)
	revision, err := w.member("a", 1).revision()
	if err != nil {
		t.Fatal(err)
	}
	w.bringBack("a-0", "a-2")
	if id := w.requireOneCluster("a", 3); id != lost {
		t.Fatalf("it is cluster %s, and was %s", id, lost)
	}
	volumes := w.volumeUIDs("a")
	older, err := w.object(configMaps, "a-members")
	if err != nil {
		t.Fatal(err)
	}
	putBack := w.takeAway("a-0", "a-2")

	order := func(id, more string) string { return "recovery: {clusterID: " + id + ", member: 1" + more + "}" }
	blocked := func(words string, args ...string) {
		t.Helper()
		r := w.runFrom(outside, append([]string{"run", "--until-converged", "--timeout=3m"}, args...)...)
		if r.requireCode(t, exitBlocked); !r.says(words) {
			t.Fatalf("%s\nwant %s", r, words)
		}
	}
	w.declare(modern, three, order("c1", ""))
	blocked("2 required")
	w.declare(modern, three, order(lost, ""))
	blocked("--allow-recovery")
	blocked("--backup-image", "--allow-recovery")
	image := []string{"--allow-recovery", "--backup-image", deployedImage}
	blocked("volumes of a-0 and a-2 also exist", image...)
	w.declare(modern, three, order(lost, ", lost: [0, 2]"))
	blocked("the volume of a-0 is kept, because it holds data from lost cluster "+strings.TrimLeft(lost, "0"), image...)
	w.requireCondition("a", "Stalled", "True", "ScaleUp")
	if got := w.member("a", 1).get("greeting"); got != "hello" {
		t.Errorf("the greeting is %q", got)
	}
	if now, err := w.member("a", 1).revision(); err != nil || now < revision+1_000_000_000 {
		t.Errorf("the revision is %d, and was %d: %v", now, revision, err)
	}

	serving := func(want ...string) error {
		var now []string
		for _, pod := range w.pods("a") {
			if ready(pod) {
				now = append(now, pod.Name)
			}
		}
		if slices.Sort(now); !slices.Equal(now, want) {
			return fmt.Errorf("%v serve, want %v", now, want)
		}
		return nil
	}
	newer, err := w.object(configMaps, "a-members")
	if err != nil {
		t.Fatal(err)
	}
	w.disturb(disturbance{"record deleted", configMaps, "a-members", ""})
	w.recreate(configMaps, older)
	putBack()
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=3")
	eventually(t, "the lost cluster serves behind the Service of the new cluster", func() error {
		return serving("a-0", "a-1", "a-2")
	})
	// A kubelet may once more give the older ConfigMap to a new pod. In that case, the next pass stops the pod again.
	eventually(t, "passes stop the lost cluster", func() error {
		blocked("the recorded cluster ID is "+strings.TrimLeft(lost, "0"), image...)
		for _, pod := range []string{"a-0", "a-2"} {
			log, err := w.tryKubectl("--namespace", w.namespace, "logs", pod)
			if err != nil {
				return fmt.Errorf("read the log of %s: %s: %w", pod, log, err)
			}
			if !strings.Contains(log, "no such file") {
				return fmt.Errorf("%s has not been started without a file: %s", pod, log)
			}
		}
		return serving("a-1")
	})
	if w.toldOf("the volumes of a-0 and a-2 belong to lost cluster") == 0 {
		t.Error("members of the lost cluster were not stopped")
	}
	if got := w.member("a", 1).get("greeting"); got != "hello" {
		t.Errorf("the greeting is %q", got)
	}
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes %v, were %v", now, volumes)
	}
	w.disturb(disturbance{"record deleted", configMaps, "a-members", ""})
	w.recreate(configMaps, newer)

	w.declare(modern, three, order(lost, ", lost: [0, 2], oldVolumes: Delete"))
	w.convergeFrom(outside, append(image[1:], "--timeout=3m")...).requireRule(t, "a", "Converged")
	if id := w.requireOneCluster("a", 3); id == lost {
		t.Error("it is the lost cluster")
	}
	if now := w.volumeUIDs("a"); now["a-1"] != volumes["a-1"] || now["a-0"] == volumes["a-0"] {
		t.Errorf("volumes %v, were %v", now, volumes)
	}
	if got := w.member("a", 2).get("greeting"); got != "hello" {
		t.Errorf("the greeting is %q", got)
	}
	w.requireQuiet("a")
	w.recoverFromBackup()
}

// recoverFromBackup loses two volumes again. The spec then requests a new cluster from a backup, which is restored to
// the third member's volume. Only data written before the backup is restored, and the third member's old data is kept.
func (w *world) recoverFromBackup() {
	w.t.Helper()
	s3 := w.serveS3Inside()
	w.createSecrets(s3)
	args := append(s3.allowed(), "--timeout=3m")
	declared := "backup: {schedule: '@yearly', to: " + s3.destination() + "}"
	w.declare(modern, three, declared)
	w.convergeFrom(outside, args...)
	backup := w.awaitBackup(args, func(backupStatus) bool { return true }).Last
	w.member("a", 0).put("later", "gone")
	lost := w.requireOneCluster("a", 3)
	revision, err := w.member("a", 1).revision()
	if err != nil {
		w.t.Fatal(err)
	}
	w.emptyVolumes("a-0", "a-2")
	volumes := w.volumeUIDs("a")

	order := func(members string) string {
		return fmt.Sprintf("recovery: {clusterID: %s, member: 1, lost: [%s], oldVolumes: Delete, backup: {name: %s, from: %s}}", lost, members,
			backup.Slot.Format("20060102t150405z"), s3.destination())
	}
	args = append(args, "--allow-recovery")
	w.declare(modern, three, declared, order("1, 2"))
	blocked := w.runFrom(outside, append([]string{"run", "--until-converged"}, args...)...).requireCode(w.t, exitBlocked)
	if !blocked.says("volumes of a-0 exist and may hold writes made after the backup") {
		w.t.Errorf("%s", blocked)
	}
	w.declare(modern, three, declared, order("0, 1, 2"))
	w.convergeFrom(outside, args...).requireRule(w.t, "a", "Converged")
	if id := w.requireOneCluster("a", 3); id == lost {
		w.t.Error("it is the lost cluster")
	}
	if now := w.volumeUIDs("a"); now["a-1"] != volumes["a-1"] || now["a-0"] == volumes["a-0"] {
		w.t.Errorf("volumes %v, were %v", now, volumes)
	}
	member, err := w.dataDir(1)
	if err != nil {
		w.t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(member), "member.lost-*"+lost, "snap", "db"))
	if err != nil || len(kept) != 1 {
		w.t.Errorf("what a-1 had is kept as %v: %v", kept, err)
	}
	m := w.member("a", 2)
	if greeting, later := m.get("greeting"), m.get("later"); greeting != "hello" || later != "" {
		w.t.Errorf("the greeting is %q, and the later value is %q", greeting, later)
	}
	if now, err := m.revision(); err != nil || now < revision+900_000_000 {
		w.t.Errorf("the revision is %d, and was %d: %v", now, revision, err)
	}
	w.requireRestoredFrom(lost)

	// The pod of the completed recovery Job does not prevent the deletion of a-1's volume once that volume is lost.
	before := w.volumeUIDs("a")["a-1"]
	w.loseVolume("a-1")
	w.convergeFrom(outside, args...).requireRule(w.t, "a", "Converged")
	if w.requireOneCluster("a", 3); w.volumeUIDs("a")["a-1"] == before {
		w.t.Error("a-1 still has its volume")
	}
}

// bringBack moves the data of the given members away, so that the cluster has no quorum and passes leave it unchanged,
// and then moves the data back.
func (w *world) bringBack(pods ...string) {
	w.t.Helper()
	revision, err := w.member("a", 1).revision()
	if err != nil {
		w.t.Fatal(err)
	}
	putBack := w.takeAway(pods...)
	lost := w.runFrom(outside, "run", "--until-converged", "--timeout=3m", patientWithEtcd).requireCode(w.t, exitBlocked)
	if rule := lost.requireRule(w.t, "a", "QuorumLost"); !rule.says("2 required") {
		w.t.Errorf("%s", lost)
	}
	putBack()
	w.converge()
	if now, err := w.member("a", 1).revision(); err != nil || now < revision || now > revision+1_000_000 {
		w.t.Errorf("the revision is %d, and was %d: %v", now, revision, err)
	}
}

// takeAway moves the data of the given members away and restarts their pods. putBack moves the data back and restarts
// the pods again.
func (w *world) takeAway(pods ...string) (putBack func()) {
	w.t.Helper()
	restart := func() {
		for _, pod := range pods {
			w.kubectl("--namespace", w.namespace, "delete", "pod", pod, "--grace-period=1", "--ignore-not-found")
		}
	}
	away := map[string]string{}
	for _, pod := range pods {
		ordinal, _ := strconv.Atoi(strings.TrimPrefix(pod, "a-"))
		dir, err := w.dataDir(ordinal)
		if err == nil {
			away[dir] = dir + "-away"
			err = os.Rename(dir, away[dir])
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	restart()
	return func() {
		w.t.Helper()
		for dir, kept := range away {
			if err := errors.Join(os.RemoveAll(dir), os.Rename(kept, dir)); err != nil {
				w.t.Fatal(err)
			}
		}
		restart()
	}
}
