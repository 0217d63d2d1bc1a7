package podstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// imageReasons lists the waiting reasons of a container whose image cannot be pulled.
var imageReasons = []string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"}

// imageTrouble returns the image that a container cannot get and the reason, or "" if the container has its image or
// may still get it. It ignores earlier exits of containers in the same pod.
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

// awaitedImage returns the image for which the etcd container is waiting, and since when, or "". The kubelet does not
// report a reason while it pulls an image, but the pod's volumes and network are then ready, and the container has no
// image yet.
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
