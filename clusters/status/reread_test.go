package status

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// TestRereadIsRemembered: damaged stored backups stay in the status when the Jobs are gone, with a condition that names
// them, and are an event once.
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

// TestUnlistedStoreIsUnknown: a store that could not be listed does not count as sound. What was known before remains
// valid.
func TestUnlistedStoreIsUnknown(t *testing.T) {
	unlisted := &decide.Reread{Job: "a-backup-2", At: noon, Unread: "list what begins with \"ns/a/\": no such host\x1b[2J"}
	before := &decide.Reread{Job: "a-backup-1", At: noon.Add(-time.Hour), Backups: 7}
	damaged := *before
	damaged.Damaged = []string{"20261120t180000z"}
	for name, test := range map[string]struct {
		seen         *decide.Reread
		status       metav1.ConditionStatus
		reason, says string
	}{
		"never listed":         {unlisted, metav1.ConditionUnknown, "Unknown", "no such host"},
		"listed before":        {decide.LaterReread(unlisted, before), metav1.ConditionFalse, "Sound", "of 7"},
		"damaged before":       {decide.LaterReread(unlisted, &damaged), metav1.ConditionTrue, "Damaged", "20261120t180000z"},
		"one cannot be read":   {&decide.Reread{At: noon, Backups: 7, Unread: "read: 403"}, metav1.ConditionFalse, "Sound", "of 7"},
		"there are none":       {&decide.Reread{At: noon}, metav1.ConditionFalse, "Sound", "of 0"},
		"all that are, damage": {&decide.Reread{At: noon, Unread: "read: 403", Damaged: damaged.Damaged}, metav1.ConditionTrue, "Damaged", "20261120t180000z"},
	} {
		live, entry := backedUp(), healthyEntry()
		entry.State.Declared.Lifecycle, entry.State.Backups = decide.Running, decide.Backups{Reread: test.seen}
		next := newStatus(live, live, entry, fetchedMain)
		c := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionBackupDamaged)
		if c == nil || c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says) || c.Message != visible.Line(c.Message) {
			t.Errorf("%s: %+v", name, c)
		}
		if events := backupEvents(backedUp(), next, kube.Event{}); len(events) > 0 != (test.reason == "Damaged") {
			t.Errorf("%s: %+v", name, events)
		}
	}
}
