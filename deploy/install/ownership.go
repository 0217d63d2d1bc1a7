package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/deploy"
)

// Helm uses these annotations to identify the objects of a release.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

// owner returns the owner of an object that has one of Quorate's names but must not be changed by "quorate install",
// or "" if the object may be changed.
func owner(object *unstructured.Unstructured) string {
	if name := object.GetAnnotations()[helmRelease]; name != "" {
		namespace := object.GetAnnotations()[helmNamespace]
		return fmt.Sprintf("owned by Helm release %q in namespace %q", name, namespace)
	}
	if object.GetKind() == "ClusterRoleBinding" {
		if others := boundIn(object); len(others) > 0 && !slices.Contains(others, deploy.Namespace) {
			return fmt.Sprintf("owned by Quorate in namespace %q", strings.Join(others, ", "))
		}
	}
	return ""
}

// boundIn returns the namespaces of the service accounts in a binding.
func boundIn(binding *unstructured.Unstructured) []string {
	var namespaces []string
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		if namespace, _, _ := unstructured.NestedString(subject, "namespace"); namespace != "" {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// findInstalled returns the existing objects of all modes.
func (i Installer) findInstalled(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := installable()
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, like := range all {
		object, err := i.Client.Find(ctx, like)
		if err != nil {
			return nil, err
		}
		if object != nil {
			found = append(found, object)
		}
	}
	return found, nil
}

// OwnedError reports that objects with Quorate's names belong to another owner. Nothing was applied, and manual action
// is required.
type OwnedError struct{ objects error }

// Error implements error. It names each object and its owner.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("nothing was applied: %s; upgrade Quorate there, or uninstall it there first", e.objects)
}

// Unwrap returns an error for each object.
func (e *OwnedError) Unwrap() error { return e.objects }

// refuseForeign returns an OwnedError if objects belong to another owner. If they were taken over, the owner's pods
// would lose their rights, or the owner's next upgrade would restore different arguments.
func refuseForeign(found []*unstructured.Unstructured) error {
	var problems error
	for _, object := range found {
		if whose := owner(object); whose != "" {
			problems = errors.Join(problems, fmt.Errorf("%s is %s", objectName(object), whose))
		}
	}
	if problems == nil {
		return nil
	}
	return &OwnedError{problems}
}

// skipForeign returns the objects that may be deleted, and reports the others. A ClusterRole is kept if its binding is
// kept.
func (i Installer) skipForeign(found []*unstructured.Unstructured) []*unstructured.Unstructured {
	var ours []*unstructured.Unstructured
	whose := map[string]string{}
	for _, object := range found {
		if is := owner(object); is != "" {
			whose[object.GetKind()] = is
		}
	}
	for _, object := range found {
		is := owner(object)
		if is == "" && object.GetKind() == "ClusterRole" {
			is = whose["ClusterRoleBinding"]
		}
		if is == "" {
			ours = append(ours, object)
			continue
		}
		fmt.Fprintf(i.Err, "%s is kept: it is %s\n", objectName(object), is)
	}
	return ours
}

// gainsRights reports whether runs previously had rights only in some namespaces, because an overlay restricted them.
func gainsRights(before []*unstructured.Unstructured) bool {
	is := func(kinds ...string) bool {
		return slices.ContainsFunc(before, func(o *unstructured.Unstructured) bool {
			return slices.Contains(kinds, o.GetKind())
		})
	}
	return is("CronJob", "Deployment") && !is("ClusterRoleBinding")
}
