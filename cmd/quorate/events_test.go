package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStatusShowsEvents checks that the status of one cluster ends with the cluster's recent events from Quorate and
// Kubernetes, and does not contain events about other clusters.
func TestStatusShowsEvents(t *testing.T) {
	w := newTenants(t, "own")
	w.made("own/one", "own/two")
	tell := func(name, kind, of, note string, at time.Time) {
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: name}, EventTime: metav1.NewMicroTime(at), ReportingController: "test",
			ReportingInstance: "test", Action: "Test", Reason: "Tested", Type: corev1.EventTypeWarning, Note: note,
			Regarding: corev1.ObjectReference{Kind: kind, Namespace: "own", Name: of},
		}
		if _, err := w.server.Client.EventsV1().Events("own").Create(w.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	tell("later", "StatefulSet", "one", "the later one", now)
	tell("earlier", "EtcdCluster", "one", "the earlier one", now.Add(-200*time.Minute))
	tell("other", "EtcdCluster", "two", "of another cluster", now)

	said := w.output("status", "own/one")
	_, events, _ := strings.Cut(said, "    events\n")
	first, second, _ := strings.Cut(events, "\n")
	if !strings.HasPrefix(first, "      3h") || !strings.HasSuffix(first, " ago  Warning  EtcdCluster one  Tested: the earlier one") || !strings.Contains(second, "StatefulSet one  Tested: the later one") || strings.Contains(said, "another") {
		t.Errorf("its status is\n%s", said)
	}
	if all := w.output("status"); strings.Contains(all, "Tested") {
		t.Errorf("the table is\n%s", all)
	}
}
