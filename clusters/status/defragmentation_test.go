package status

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestDefragmentationIsReported checks what the status records about a request and its last remaining member after an
// attempt, and that the next pass reads back the same values.
func TestDefragmentationIsReported(t *testing.T) {
	now := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	for what, test := range map[string]struct {
		outcome   *report.Outcome
		completed bool
		attempted bool
		failure   string
	}{
		"defragmented":      {&report.Outcome{Changed: true}, true, true, ""},
		"failed":            {&report.Outcome{Changed: true, Failure: "no\x1b[2J\nspace"}, true, true, `no\x1b[2J space`},
		"result is unknown": {&report.Outcome{Changed: true, Failure: decide.Unfinished}, false, true, decide.Unfinished},
		"not yet":           {&report.Outcome{Detail: "not yet"}, false, false, ""},
		"error":             {nil, false, false, ""},
	} {
		done := decide.LastDefragmentation{At: now.Add(-time.Minute)}
		s := decide.State{Name: "a", Now: now, Declared: decide.Declared{Defragmentation: decide.Defragmentation{Request: "now"}},
			DefragmentationRequest: decide.DefragmentationRequest{Request: "now", Since: now.Add(-2 * time.Minute)},
			Membership: decide.Membership{Known: true, Members: []decide.Member{
				{ID: 1, Name: "a-0", Answers: true, Defragmented: done}, {ID: 2, Name: "a-1", Answers: true},
			}}}
		entry := report.Cluster{State: s, Outcome: test.outcome,
			Decision: decide.Decision{Action: decide.Defragment{ID: 2, Name: "a-1"}}}
		custom := &v1alpha1.EtcdCluster{}
		custom.Status.Members = memberStatuses(s, custom.Status)
		setDefragmentation(&custom.Status, entry)
		if got := DefragmentationRequest(custom); got.Request != "now" || !got.Since.Equal(now.Add(-2*time.Minute)) || got.Completed != test.completed {
			t.Errorf("%s: read back the request %+v", what, got)
		}
		members := []decide.Member{{ID: 1}, {ID: 2}}
		RecallDefragmentation(custom, members)
		if last := members[1].Defragmented; members[0].Defragmented != done || last.At.IsZero() == test.attempted || last.Failure != test.failure {
			t.Errorf("%s: read back the members %+v", what, members)
		}
	}
}

// TestEditedDefragmentationStatus checks that a recorded request without a time is ignored, and that hostile text in
// the status is truncated and made safe to display.
func TestEditedDefragmentationStatus(t *testing.T) {
	custom := &v1alpha1.EtcdCluster{}
	custom.Status.Defragmentation = &v1alpha1.DefragmentationStatus{Request: "x"}
	if got := DefragmentationRequest(custom); got != (decide.DefragmentationRequest{}) {
		t.Errorf("a request without a time: %+v", got)
	}
	hostile := "\x1b[2J\n::error::" + strings.Repeat("A", 1<<20)
	custom.Status.Defragmentation.Since, custom.Status.Defragmentation.Request = metav1.Now(), hostile
	custom.Status.Members = []v1alpha1.MemberStatus{{ID: "1", DefragmentedAt: metav1.Now(), DefragmentationFailure: hostile}}
	members := []decide.Member{{ID: 1}}
	RecallDefragmentation(custom, members)
	for _, text := range []string{DefragmentationRequest(custom).Request, members[0].Defragmented.Failure} {
		if len(text) > 1024 || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%d bytes: %.80q", len(text), text)
		}
	}
}
