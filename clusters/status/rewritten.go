package status

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// maxRewritten is the maximum number of rewritten fields in a status. Any further fields count as drift.
const maxRewritten = 64

// repeated returns the actions that consecutive passes, including this one, have repeated.
func repeated(entry report.Cluster) []v1alpha1.RepeatedAction {
	changed := entry.Outcome != nil && entry.Outcome.Changed
	var list []v1alpha1.RepeatedAction
	for _, r := range decide.Repeats(entry.State, entry.Decision, changed) {
		list = append(list, v1alpha1.RepeatedAction{Rule: r.Rule, What: printable.Line(r.What),
			Times: int32(min(r.Times, math.MaxInt32)), Last: metav1.NewTime(r.Last)})
	}
	return list
}

func rewritten(fields []decide.RewrittenField) []v1alpha1.RewrittenField {
	var list []v1alpha1.RewrittenField
	for _, f := range fields[:min(len(fields), maxRewritten)] {
		list = append(list, v1alpha1.RewrittenField{Object: f.Object, Field: printable.Line(f.Field),
			By: printable.Line(f.By), Digest: f.Digest})
	}
	return list
}

// setFieldsRewritten sets a condition that lists the rewritten fields, or removes it if there are none.
func setFieldsRewritten(status *v1alpha1.EtcdClusterStatus, now metav1.Time) {
	if len(status.Rewritten) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionFieldsRewritten)
		return
	}
	var names []string
	for _, f := range status.Rewritten {
		names = append(names, decide.RewrittenField{Object: f.Object, Field: f.Field, By: f.By}.String())
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFieldsRewritten, Status: metav1.ConditionTrue, Reason: "Admission",
		Message: "an admission policy or webhook changes fields that Quorate applies: " +
			strings.Join(names, ", "),
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: now,
	})
}

// rewrittenEvents returns a warning whenever the rewritten fields change.
func rewrittenEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFieldsRewritten)
	if condition == nil || !changed(custom, status, v1alpha1.ConditionFieldsRewritten) {
		return nil
	}
	event.Warning, event.Reason, event.Note = true, v1alpha1.ConditionFieldsRewritten, condition.Message
	return []kube.Event{event}
}
