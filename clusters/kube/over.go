package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrConflict says that an object is not as it was read any more.
var ErrConflict = errors.New("it has changed since it was read")

// IsConflict reports whether a write was refused because its object has changed since it was read,
// or has come or gone.
func IsConflict(err error) bool {
	return errors.Is(err, ErrConflict) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// never is a resourceVersion that no object ever has, since etcd counts from it. Applied with it,
// an object is made if there is none, and refused if there is one.
const never = "1"

// over says which version of an object a write is for: that very one, or none at all.
func over(read metav1.Object) (uid types.UID, version string) {
	if read == nil {
		return "", never
	}
	return read.GetUID(), read.GetResourceVersion()
}

// ApplyOver applies an object over the version of it that was read, or makes it if none was, and
// refuses if it has changed, come or gone since. So a write that comes late, however late, undoes
// nothing. It returns the object as the API server stored it, after admission.
func (c *Client) ApplyOver(ctx context.Context, object any, read metav1.Object) (metav1.Object, error) {
	uid, version := over(read)
	for _, kind := range kinds {
		if kind.over(object, uid, version) {
			break
		}
	}
	return c.Apply(ctx, object)
}
