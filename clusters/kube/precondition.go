package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrConflict is returned if an object has changed since it was read.
var ErrConflict = errors.New("it has changed since it was read")

// IsConflict reports whether a write was rejected because the object has been changed, created or deleted since it was
// read.
func IsConflict(err error) bool {
	return errors.Is(err, ErrConflict) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// neverExists is a resourceVersion that no object has, because it is etcd's first revision. With it, apply creates an
// object, and is rejected if the object already exists.
const neverExists = "1"

// over returns the UID and version of the object that a write requires, or neverExists as the version if read is nil.
func over(read metav1.Object) (uid types.UID, version string) {
	if read == nil {
		return "", neverExists
	}
	return read.GetUID(), read.GetResourceVersion()
}

// ApplyIfUnchanged applies an object, or creates it if read is nil. The API server rejects the write if the object has
// been changed, created or deleted since it was read, so a late write never reverts a change. ApplyIfUnchanged returns
// the stored object after admission.
func (c *Client) ApplyIfUnchanged(ctx context.Context, object any, read metav1.Object) (metav1.Object, error) {
	uid, version := over(read)
	for _, kind := range kinds {
		if kind.over(object, uid, version) {
			break
		}
	}
	return c.Apply(ctx, object)
}
