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

// watched are the kinds whose changes wake a waiting pass, and whether they carry labels.
func watched() map[schema.GroupVersionResource]bool {
	return map[schema.GroupVersionResource]bool{
		corev1.SchemeGroupVersion.WithResource("pods"):                   true,
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): true,
		appsv1.SchemeGroupVersion.WithResource("statefulsets"):           true,
		v1alpha1.Resource: false,
	}
}

// Watch calls changed with each object of Quorate's that changes in a namespace, or in any if it has no
// name; without its labels if it is an EtcdCluster, which is its own cluster. It calls with nil where
// changes may have been missed, as between two watches. What it tells is no more than that: what changed is
// read again. Of an EtcdCluster of which nothing but the status has changed it may tell nothing: it is mostly
// Quorate that writes that. It ends with ctx.
//
// It returns once it knows where each watch is to begin, or that this cannot be known: from then on, nothing
// that changes is missed, however long the API server or what is between takes to answer a watch.
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

// watchPause is the pause before a watch is taken up again. It doubles, up to longestWatchPause, as long as watches
// end sooner than that, as where no right to watch is given.
const watchPause, longestWatchPause = time.Second, time.Minute

// watch tells of changes of one resource until ctx is done, and takes a watch up again that broke off. It
// closes placed once it knows where to begin, or that this cannot be known.
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

// pausesAfter are the pause after a watch that lasted so long, where that was to be the next one, and the next one.
func pausesAfter(lasted, pause time.Duration) (now, next time.Duration) {
	if lasted >= pause {
		pause = watchPause
	}
	return pause, min(2*pause, longestWatchPause)
}

// now is the version of the resource from which a watch sees all that changes, and nothing that is there.
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

// seen are the objects that a watch has told of: of each a digest of its metadata, less what a new status changes.
type seen map[types.UID][sha256.Size]byte

// isNews reports whether an event tells of more than a new status, or may do so.
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

// follow tells of what changes from a version on until ctx is done, or that cannot be told any more. The API server
// ends each watch after a while, and what is between may do so sooner: the next one begins where the last one ended.
func (c *Client) follow(
	ctx context.Context, resource schema.GroupVersionResource, namespace, from string, opts metav1.ListOptions,
	changed func(metav1.Object),
) error {
	opts.AllowWatchBookmarks = true // else where it ended may be too long ago where little changes
	for opts.ResourceVersion = from; ; {
		began := time.Now()
		reached, err := c.forward(ctx, resource, namespace, opts, changed)
		if err != nil || reached == "" || ctx.Err() != nil || time.Since(began) < watchPause {
			return err
		}
		opts.ResourceVersion = reached
	}
}

// forward watches, and tells of what changes until ctx is done or the watch breaks off. It returns the version from
// which another watch sees what this one has not; empty if there is none.
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
