package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/yaml"
)

// workers is the number of pods processed in parallel.
const workers = 32

// kubelet reports the node's pods as running and starts fake etcd members for them.
type kubelet struct {
	node
	etcd  *etcd
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	pods  cache.SharedIndexInformer
}

// run processes pods until ctx is done.
func (k *kubelet) run(ctx context.Context) error {
	k.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](100*time.Millisecond, 5*time.Second))
	here := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.name).String()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(k.api, 0, informers.WithTweakListOptions(here))
	k.pods = factory.Core().V1().Pods().Informer()
	enqueue := func(object any) {
		if pod, is := object.(*corev1.Pod); is {
			k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	_, err := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	for range workers {
		go k.work(ctx)
	}
	<-ctx.Done()
	k.queue.ShutDown()
	return nil
}

func (k *kubelet) work(ctx context.Context) {
	for {
		name, over := k.queue.Get()
		if over {
			return
		}
		if err := k.see(ctx, name); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			slog.Warn("pod", "pod", name, "error", err)
			k.queue.AddRateLimited(name)
		} else {
			k.queue.Forget(name)
		}
		k.queue.Done(name)
	}
}

// see processes a pod: it starts a new pod and deletes a terminating pod.
func (k *kubelet) see(ctx context.Context, name types.NamespacedName) error {
	found, there, err := k.pods.GetStore().GetByKey(name.String())
	if err != nil {
		return err
	}
	if !there {
		k.etcd.stop(name, "")
		return nil
	}
	pod := found.(*corev1.Pod)
	switch {
	case pod.DeletionTimestamp != nil:
		k.etcd.stop(name, pod.UID)
		now := int64(0)
		return k.api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now,
			Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Status.Phase == corev1.PodRunning:
		return nil
	}
	m, err := k.member(ctx, pod)
	if err == nil {
		err = k.etcd.start(name, m)
	}
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	return k.runs(ctx, pod)
}

// runs reports a pod as running and ready to the API server.
func (k *kubelet) runs(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, HostIP: k.address, PodIP: k.address,
		HostIPs: []corev1.HostIP{{IP: k.address}}, PodIPs: []corev1.PodIP{{IP: k.address}}}
	for _, condition := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized,
		corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions,
			corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		started := true
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "fleet://" + string(pod.UID), Ready: true,
			Started: &started,
			State:   corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.api.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// member reads the parameters that a kubelet would pass to a pod's etcd.
func (k *kubelet) member(ctx context.Context, pod *corev1.Pod) (member, error) {
	m := member{uid: pod.UID, version: pod.Annotations["etcd.quorate.dev/version"]}
	for _, volume := range pod.Spec.Volumes {
		var err error
		switch {
		case volume.ConfigMap != nil:
			m.config, err = k.configuration(ctx, pod, volume.ConfigMap.Name)
		case volume.Secret != nil && volume.Name == "server-tls":
			m.tls, err = k.serving(ctx, pod.Namespace, volume.Secret.SecretName)
		case volume.PersistentVolumeClaim != nil:
			m.volume, err = k.claim(ctx, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		}
		if err != nil {
			return m, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	if m.tls == nil {
		return m, errors.New("only members that use TLS can be distinguished")
	}
	return m, nil
}

func (k *kubelet) configuration(ctx context.Context, pod *corev1.Pod, name string) (c configuration, err error) {
	files, err := k.api.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return c, err
	}
	text, there := files.Data[configured(pod)]
	if !there {
		return c, fmt.Errorf("ConfigMap %s does not contain file %q", name, configured(pod))
	}
	err = yaml.Unmarshal([]byte(text), &c)
	return c, err
}

func (k *kubelet) serving(ctx context.Context, namespace, name string) (*tls.Config, error) {
	secret, err := k.api.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return serves(secret.Data)
}

func (k *kubelet) claim(ctx context.Context, namespace, name string) (types.UID, error) {
	claim, err := k.api.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return claim.UID, nil
}

// configured returns the name of the pod's etcd configuration file.
func configured(pod *corev1.Pod) string {
	for _, word := range pod.Spec.Containers[0].Command {
		if path, is := strings.CutPrefix(word, "--config-file="); is {
			return strings.ReplaceAll(path[strings.LastIndex(path, "/")+1:], "$(POD_NAME)", pod.Name)
		}
	}
	return ""
}
