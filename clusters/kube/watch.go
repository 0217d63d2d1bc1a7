package kube

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// watched are the kinds whose changes wake a waiting pass.
func watched() map[schema.GroupVersionResource]bool {
	return map[schema.GroupVersionResource]bool{
		corev1.SchemeGroupVersion.WithResource("pods"):                   true,
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): true,
		appsv1.SchemeGroupVersion.WithResource("statefulsets"):           true,
		v1alpha1.Resource: false,
	}
}

// Watch puts something into a channel, if there is room, once anything of Quorate's has changed in
// a namespace, or in any if it has no name. It wakes and says no more: what changed is read again.
// It ends with ctx.
func (c *Client) Watch(ctx context.Context, namespace, selector string, changes chan<- struct{}) {
	for resource, selected := range watched() {
		opts := metav1.ListOptions{}
		if selected {
			opts.LabelSelector = selector
		}
		go c.watch(ctx, resource, namespace, opts, changes)
	}
}

// watch reports changes of one resource until ctx is done, and takes a watch up again that broke
// off.
func (c *Client) watch(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions,
	changes chan<- struct{},
) {
	const pause = time.Second
	for ctx.Err() == nil {
		w, err := c.watches.Resource(resource).Namespace(namespace).Watch(ctx, opts)
		if err == nil {
			forward(ctx, w, changes)
			w.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func forward(ctx context.Context, w watch.Interface, changes chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}
}
