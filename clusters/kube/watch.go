package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// watched returns the kinds whose changes wake a waiting pass, and whether their objects have Quorate's labels.
func watched() map[schema.GroupVersionResource]bool {
	return map[schema.GroupVersionResource]bool{
		corev1.SchemeGroupVersion.WithResource("pods"):                   true,
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): true,
		appsv1.SchemeGroupVersion.WithResource("statefulsets"):           true,
		v1alpha1.Resource: false,
	}
}

// Watch calls changed with each of Quorate's objects that changes in a namespace, or in all namespaces if namespace is
// empty. An EtcdCluster is passed without its labels. Watch passes nil if it may have missed changes, for example
// between two watches. The call is only a hint, so changed objects must be read again. Changes that affect only the
// status of an EtcdCluster may be omitted, because Quorate itself makes most of them. Watch ends with ctx.
//
// It returns once it has determined where each watch starts, or that this cannot be determined. From then on, it does
// not miss any changes, however long the API server or a proxy takes to respond to a watch.
func (c *Client) Watch(ctx context.Context, namespace, selector string, changed func(object metav1.Object)) {
	var placed []chan struct{}
	for resource, selected := range watched() {
		opts := metav1.ListOptions{}
		if selected {
			opts.LabelSelector = selector
		}
		tell := changed
		if !selected {
			tell = func(object metav1.Object) {
				if object != nil {
					object.SetLabels(nil)
				}
				changed(object)
			}
		}
		known := make(chan struct{})
		placed = append(placed, known)
		go c.watch(ctx, resource, namespace, opts, tell, known)
	}
	for _, known := range placed {
		<-known
	}
}

// watchPause is the pause before a watch is restarted. It doubles, up to longestWatchPause, as long as each watch ends
// sooner than its pause, for example because the right to watch is missing.
const watchPause, longestWatchPause = time.Second, time.Minute

// watch reports changes to one resource until ctx is done, and restarts a watch that has ended. It closes placed once
// it has determined where to start, or that this cannot be determined.
func (c *Client) watch(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions,
	changed func(metav1.Object), placed chan struct{},
) {
	next := watchPause
	for first := true; first || ctx.Err() == nil; first = false {
		now, err := c.now(ctx, resource, namespace, opts)
		if first {
			close(placed)
		}
		pause, began := watchPause, time.Now()
		if err == nil {
			if !first {
				changed(nil)
			}
			err = c.follow(ctx, resource, namespace, now, opts, changed)
			pause, next = pausesAfter(time.Since(began), next)
		}
		if first && err != nil {
			changed(nil)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// pausesAfter returns the pause after a watch, given the watch's duration and the planned pause, and the next planned
// pause.
func pausesAfter(lasted, pause time.Duration) (now, next time.Duration) {
	if lasted >= pause {
		pause = watchPause
	}
	return pause, min(2*pause, longestWatchPause)
}

// now returns the resource version from which a watch reports all later changes, but no existing objects.
func (c *Client) now(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions,
) (string, error) {
	list, err := c.heads.Resource(resource).Namespace(namespace).
		List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: opts.LabelSelector})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// seen maps the UID of each reported object to a digest of its metadata, excluding the fields that change with the
// status.
type seen map[types.UID][sha256.Size]byte

// isNews reports whether an event may contain more than a new status.
func (s seen) isNews(event watch.EventType, object metav1.Object) bool {
	if event == watch.Deleted {
		delete(s, object.GetUID())
		return true
	}
	text, err := json.Marshal(metav1.ObjectMeta{
		Generation: object.GetGeneration(), DeletionTimestamp: object.GetDeletionTimestamp(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
		Finalizers: object.GetFinalizers(), OwnerReferences: object.GetOwnerReferences(),
	})
	if err != nil {
		return true
	}
	before, there := s[object.GetUID()]
	now := sha256.Sum256(text)
	s[object.GetUID()] = now
	return !there || before != now
}

// follow reports all changes after the given version until ctx is done or changes are lost. The API server ends each
// watch after a while, and a proxy may end it sooner. The next watch then starts where the previous one ended.
func (c *Client) follow(
	ctx context.Context, resource schema.GroupVersionResource, namespace, from string, opts metav1.ListOptions,
	changed func(metav1.Object),
) error {
	opts.AllowWatchBookmarks = true // without bookmarks, the version may become too old if there are few changes
	for opts.ResourceVersion = from; ; {
		began := time.Now()
		reached, err := c.forward(ctx, resource, namespace, opts, changed)
		if err != nil || reached == "" || ctx.Err() != nil || time.Since(began) < watchPause {
			return err
		}
		opts.ResourceVersion = reached
	}
}

// forward watches and reports changes until ctx is done or the watch ends. It returns the version from which another
// watch can continue, or "" if it is unknown.
func (c *Client) forward(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, opts metav1.ListOptions,
	changed func(metav1.Object),
) (reached string, err error) {
	w, err := c.watches.Resource(resource).Namespace(namespace).Watch(ctx, opts)
	if err != nil {
		return "", err
	}
	defer w.Stop()
	told := seen{}
	reached = opts.ResourceVersion
	for {
		select {
		case <-ctx.Done():
			return reached, nil
		case event, open := <-w.ResultChan():
			if !open {
				return reached, nil
			}
			object, is := event.Object.(metav1.Object)
			if event.Type == watch.Error || !is {
				return "", nil
			}
			reached = object.GetResourceVersion()
			if event.Type == watch.Bookmark {
				continue
			}
			if resource != v1alpha1.Resource || told.isNews(event.Type, object) {
				changed(object)
			}
		}
	}
}
