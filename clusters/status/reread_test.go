package status

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRereadIsRemembered: which stored backups are damaged stays in the status when the Jobs are gone, as a condition
// that names them, and is an event once.
func TestRereadIsRemembered(t *testing.T) {
	live, entry := backedUp(), healthyEntry()
	entry.State.Declared.Lifecycle = decide.Running
	found := &decide.Reread{Job: "a-backup-1", At: noon.Add(-time.Hour), Backups: 7, Read: 1, Oldest: noon.Add(-90 * time.Hour), Damaged: []string{"20261120t180000z"}, More: 2, Unread: "read: 403"}
	entry.State.Backups = decide.Backups{Reread: found}
	live.Status = newStatus(live, live, entry, fetchedMain)
	c := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionBackupDamaged)
	if c == nil || c.Status != "True" || !strings.Contains(c.Message, "20261120t180000z and 2 more") {
		t.Errorf("got %+v", c)
	}
	if events := backupEvents(backedUp(), live.Status, kube.Event{}); len(events) != 1 || events[0].Reason != v1alpha1.ConditionBackupDamaged {
		t.Errorf("got %+v", events)
	}
	if events := backupEvents(live, live.Status, kube.Event{}); len(events) > 0 {
		t.Errorf("once more: %+v", events)
	}
	if got := LastReread(live, noon); !reflect.DeepEqual(got, found) {
		t.Errorf("got %+v, want %+v", got, found)
	}
	if got := LastReread(live, noon.Add(-24*time.Hour)); got != nil {
		t.Errorf("it is of the future: %+v", got)
	}
	live.Status.Backup.Reread.Damaged = []string{"20261120t180000z", "all of them\x1b[2J"}
	if got := LastReread(live, noon); !reflect.DeepEqual(got, found) {
		t.Errorf("what is no name is believed: %+v", got)
	}
	sound := *found
	sound.Damaged, sound.More = nil, 0
	entry.State.Backups.Reread = &sound
	if c := meta.FindStatusCondition(newStatus(live, live, entry, fetchedMain).Conditions, v1alpha1.ConditionBackupDamaged); c == nil || c.Status != "False" {
		t.Errorf("got %+v", c)
	}
	entry.State.Backups.Reread = nil
	if c := meta.FindStatusCondition(newStatus(live, live, entry, fetchedMain).Conditions, v1alpha1.ConditionBackupDamaged); c != nil {
		t.Errorf("got %+v", c)
	}
}
