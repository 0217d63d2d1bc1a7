package podstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// imageReasons are the reasons of a container that waits for its image in vain.
var imageReasons = []string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"}

// imageTrouble says why a container does not get its image, and which; empty if it has it, or may
// still get it. What it ended with before, in the same pod, has nothing to do with that.
func imageTrouble(c corev1.ContainerStatus) string {
	if c.State.Waiting == nil || !slices.Contains(imageReasons, c.State.Waiting.Reason) {
		return ""
	}
	why := OneLine(c.State.Waiting.Message)
	if !strings.Contains(why, c.Image) {
		why = strings.TrimSuffix(OneLine(c.Image)+": "+why, ": ")
	}
	return strings.TrimSuffix(c.State.Waiting.Reason+": "+why, ": ")
}

// awaitedImage says for which image etcd's container waits, and since when; empty if it does not.
// The kubelet gives no reason while it pulls. But the volumes and the network of the pod are there
// by then, and the container has no image yet.
func awaitedImage(pod *corev1.Pod) string {
	prepared := condition(pod, corev1.PodReadyToStartContainers)
	if prepared == nil || prepared.Status != corev1.ConditionTrue {
		return ""
	}
	c := etcdStatus(pod)
	if c.State.Waiting == nil || c.ImageID != "" || c.Image == "" {
		return ""
	}
	return fmt.Sprintf("waiting for its image %s since %s", OneLine(c.Image),
		prepared.LastTransitionTime.UTC().Format(time.RFC3339))
}
