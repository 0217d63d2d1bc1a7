package status

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// DefragmentationRequest returns the newest request to defragment all members, as recorded in the status.
func DefragmentationRequest(custom *v1alpha1.EtcdCluster) decide.DefragmentationRequest {
	r := custom.Status.Defragmentation
	if r == nil || r.Since.IsZero() {
		return decide.DefragmentationRequest{}
	}
	return decide.DefragmentationRequest{Request: shortened(r.Request), Since: r.Since.UTC(), Completed: r.Completed}
}

// RecallDefragmentation sets the last defragmentation of each member from the status. custom is nil if the custom
// resource does not exist.
func RecallDefragmentation(custom *v1alpha1.EtcdCluster, members []decide.Member) {
	if custom == nil {
		return
	}
	for i := range members {
		for _, before := range custom.Status.Members {
			if m := &members[i]; before.ID == m.ID.String() && !before.DefragmentedAt.IsZero() {
				m.Defragmented = decide.LastDefragmentation{At: before.DefragmentedAt.UTC(),
					Failure: shortened(before.DefragmentationFailure)}
			}
		}
	}
}

// NoteDefragmentation records in the status that a member's defragmentation is about to begin. It returns false if the
// status does not list the member.
func NoteDefragmentation(status *v1alpha1.EtcdClusterStatus, s decide.State, id decide.ID) bool {
	setRequest(status, s.RequestToReport(0))
	return noteAttempt(status, id, s.Now, decide.Unfinished)
}

// setDefragmentation reports the request to defragment all members, and the member that the pass has defragmented or
// tried to defragment. An attempt with an unknown result does not count toward the request yet.
func setDefragmentation(status *v1alpha1.EtcdClusterStatus, entry report.Cluster) {
	var tried decide.ID
	if a, is := entry.Decision.Action.(decide.Defragment); is && entry.Outcome != nil && entry.Outcome.Changed {
		noteAttempt(status, a.ID, entry.State.Now, entry.Outcome.Failure)
		if entry.Outcome.Failure != decide.Unfinished {
			tried = a.ID
		}
	}
	setRequest(status, entry.State.RequestToReport(tried))
}

func setRequest(status *v1alpha1.EtcdClusterStatus, r decide.DefragmentationRequest) {
	if r.Request != "" {
		status.Defragmentation = &v1alpha1.DefragmentationStatus{Request: r.Request, Since: metav1.NewTime(r.Since),
			Completed: r.Completed}
	}
}

func noteAttempt(status *v1alpha1.EtcdClusterStatus, id decide.ID, at time.Time, failure string) (found bool) {
	for i := range status.Members {
		if m := &status.Members[i]; m.ID == id.String() {
			m.DefragmentedAt, m.DefragmentationFailure, found = metav1.NewTime(at), failure, true
		}
	}
	return found
}

// shortened truncates a text from the status and makes it safe to display. Anyone who can write the status controls the
// text.
func shortened(text string) string {
	const longest = 512
	text = printable.Line(text[:min(len(text), longest)])
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// KeepsDefragmentation reports whether the status records that a member's defragmentation began at the given time.
func KeepsDefragmentation(status v1alpha1.EtcdClusterStatus, id decide.ID, at time.Time) bool {
	return slices.ContainsFunc(status.Members, func(m v1alpha1.MemberStatus) bool {
		return m.ID == id.String() && m.DefragmentedAt.Equal(&metav1.Time{Time: at}) && m.DefragmentationFailure != ""
	})
}
