package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

// News returns the news of a pass that the status of the listed resource does not contain: the cluster's events,
// whether its source can still be read, and a change of the source's revision.
func News(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, events []kube.Event) []report.News {
	var news []report.News
	for _, e := range events {
		news = append(news, report.News{Warning: e.Warning, Reason: e.Reason, Message: e.Note})
	}
	old := custom.Status
	if old.SourceRevision != status.SourceRevision {
		news = append(news, report.News{Reason: "Revision", Message: status.SourceRevision,
			About: report.AboutRevision})
	}
	// Error messages may vary, so only check whether there is an error.
	was := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionSourceReady)
	is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSourceReady)
	failed := is != nil && is.Status == metav1.ConditionFalse
	if before := was != nil && was.Status == metav1.ConditionFalse; is == nil || failed == before {
		return news
	}
	about := report.News{Warning: failed, Reason: is.Reason, Message: "the source can be read again, at " + is.Message,
		About: report.AboutSource}
	if failed {
		about.Message = "the source cannot be read; the last applied state is still in effect: " + is.Message
	}
	about.Message = printable.Line(about.Message)
	return append(news, about)
}
