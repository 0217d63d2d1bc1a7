package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Delete deletes an object as it was read, and returns whether it still existed. If the object has changed, or has been
// replaced by an object with a different UID, it is kept, which is a conflict. Dependents are deleted in the
// background, and pods get their grace period.
func (c *Client) Delete(ctx context.Context, kind string, read metav1.Object) (bool, error) {
	namespace, name := read.GetNamespace(), read.GetName()
	uid, version := over(read)
	one, known := kinds[kind]
	if !known {
		return false, fmt.Errorf("delete %s %s/%s: clusters do not have objects of this kind", kind, namespace, name)
	}
	background := metav1.DeletePropagationBackground
	err := one.remove(ctx, c.typed, namespace, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete %s %s/%s: %w", kind, namespace, name, err)
	}
	return true, nil
}
