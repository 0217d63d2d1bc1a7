package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dump prints the information needed to understand a failure, in at most two screens: the last run of quorate, the
// status of each cluster, the pods with the end of etcd's logs, and the latest events.
func (w *world) dump() {
	w.mutex.Lock()
	runs := slices.Clone(w.runs)
	w.mutex.Unlock()
	if len(runs) > 0 {
		w.t.Logf("---- the last of %d runs: %s", len(runs), runs[len(runs)-1])
	}
	for _, part := range []func() (string, error){w.describeClusters, w.describePods, w.describeReconcilers, w.describeEvents} {
		text, err := part()
		if err != nil {
			text = err.Error()
		}
		w.t.Logf("---- %s", text)
	}
}

// describeClusters describes the status of each cluster, with one line per condition and member.
func (w *world) describeClusters() (string, error) {
	list, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, item := range list.Items {
		var now status
		convert(w.t, item.Object["status"], &now)
		fmt.Fprintf(&text, "cluster %s: ID %s, leader %s, version %s, revision %s\n", item.GetName(), now.ClusterID, now.Leader, now.Version, now.DeclaredRevision)
		for _, c := range now.Conditions {
			fmt.Fprintf(&text, "%s %s=%s %s: %s\n", c.LastTransitionTime.Format(time.TimeOnly), c.Type, c.Status, c.Reason, c.Message)
		}
		for _, m := range now.Members {
			fmt.Fprintf(&text, "%s %s\n", m.Since.Format(time.TimeOnly), inOneLine(m))
		}
	}
	return text.String(), nil
}

func inOneLine(m memberStatus) string {
	return fmt.Sprintf("%s %s: %s %s %s, revision %d, alarms %v", m.Name, m.ID, m.Role, m.Health, m.Version, m.Revision, m.Alarms)
}

// describePods describes each claim and each pod in one line, followed by the last lines of etcd's log.
func (w *world) describePods() (string, error) {
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	claims, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, claim := range claims.Items {
		fmt.Fprintf(&text, "claim %s of %s: %s %s\n", claim.Name, claim.CreationTimestamp.Format(time.TimeOnly), claim.Status.Phase, claim.UID)
	}
	for _, pod := range pods.Items {
		fmt.Fprintf(&text, "pod %s of %s on %s: %s\n", pod.Name, pod.CreationTimestamp.Format(time.TimeOnly), pod.Spec.NodeName, describePod(pod))
		for _, previous := range []bool{true, false} {
			text.WriteString(w.lastWords(pod, 3, previous))
		}
	}
	return text.String(), nil
}

// describeReconcilers returns the last log lines of Quorate's own pods, if it is installed in the sandbox.
func (w *world) describeReconcilers() (string, error) {
	pods, err := w.kube.CoreV1().Pods(systemNamespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, pod := range pods.Items {
		fmt.Fprintf(&text, "pod %s of %s: %s\n%s", pod.Name, pod.CreationTimestamp.Format(time.TimeOnly), describePod(pod), w.lastWords(pod, 10, false))
	}
	return text.String(), nil
}

// lastWords returns the last lines of a pod's log, shortened.
func (w *world) lastWords(pod corev1.Pod, lines int64, previous bool) string {
	logs, err := w.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines, Previous: previous}).DoRaw(w.ctx())
	if err != nil {
		return ""
	}
	var text strings.Builder
	for line := range strings.Lines(string(logs)) {
		fmt.Fprintf(&text, "    %.220s\n", strings.TrimSpace(line))
	}
	return text.String()
}

func describePod(pod corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			words = append(words, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		words = append(words, fmt.Sprintf("restarts=%d", c.RestartCount))
		if c.State.Waiting != nil {
			words = append(words, c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	return strings.Join(words, "; ")
}

// describeEvents lists the latest events in chronological order.
func (w *world) describeEvents() (string, error) {
	list, err := w.kube.EventsV1().Events(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	const most = 25
	events := list.Items
	slices.SortStableFunc(events, func(a, b eventsv1.Event) int { return happened(a).Compare(happened(b)) })
	var text strings.Builder
	for _, e := range events[max(0, len(events)-most):] {
		fmt.Fprintf(&text, "%s %s %s/%s: %.200s\n", happened(e).Format(time.TimeOnly), e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
	}
	return text.String(), nil
}

// happened returns the time at which an event last occurred. The field that contains this time depends on the reporter.
func happened(e eventsv1.Event) time.Time {
	series := time.Time{}
	if e.Series != nil {
		series = e.Series.LastObservedTime.Time
	}
	return slices.MaxFunc([]time.Time{series, e.DeprecatedLastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time}, time.Time.Compare)
}
