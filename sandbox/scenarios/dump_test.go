package scenarios

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// dump prints what one needs to understand a failure: the last runs of quorate, the status of each cluster, pods, events and the end of etcd's logs.
func (w *world) dump() {
	w.mutex.Lock()
	runs := slices.Clone(w.runs)
	w.mutex.Unlock()
	for _, r := range runs[max(0, len(runs)-2):] {
		w.t.Logf("---- %s", r)
	}
	list, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Log(err)
		return
	}
	for _, item := range list.Items {
		text, _ := yaml.Marshal(item.Object["status"])
		w.t.Logf("---- status of %s\n%s", item.GetName(), text)
	}
	w.dumpPods()
	w.dumpEvents()
}

func (w *world) dumpPods() {
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Log(err)
		return
	}
	lines := int64(8)
	for _, pod := range pods.Items {
		w.t.Logf("---- pod %s on %s: %s", pod.Name, pod.Spec.NodeName, describePod(pod))
		for _, previous := range []bool{true, false} {
			logs, err := w.kube.CoreV1().Pods(w.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines, Previous: previous}).DoRaw(w.ctx())
			if err == nil {
				w.t.Logf("logs (previous container: %t):\n%s", previous, logs)
			}
		}
	}
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

func (w *world) dumpEvents() {
	events, err := w.kube.EventsV1().Events(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Log(err)
		return
	}
	var text strings.Builder
	for _, e := range events.Items {
		fmt.Fprintf(&text, "%s %s %s/%s: %s\n", e.Type, e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
	}
	w.t.Logf("---- events\n%s", end(text.String()))
}
