package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Helm identifies the objects of a release by these annotations.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

// owner returns the owner of an object that has one of Quorate's names but that "quorate install" must not change. It
// returns "" if the object may be changed.
func owner(object *unstructured.Unstructured) string {
	if name := object.GetAnnotations()[helmRelease]; name != "" {
		namespace := object.GetAnnotations()[helmNamespace]
		return fmt.Sprintf("owned by Helm release %q in namespace %q", name, namespace)
	}
	return ""
}

// findInstalled returns those objects of any mode that exist.
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

// OwnedError reports that objects with Quorate's names belong to another owner, or would have to be changed while
// something else uses them. Nothing was applied, and manual action is required.
type OwnedError struct{ objects error }

// Error implements error. It names each object, its owner, and what to do.
func (e *OwnedError) Error() string { return fmt.Sprintf("nothing was applied: %s", e.objects) }

// Unwrap returns an error for each object.
func (e *OwnedError) Unwrap() error { return e.objects }

// shared returns the existing objects that must not be applied because something else also uses them, with the reason.
// These objects already grant all the rights that are needed. shared returns an OwnedError if objects belong to another
// owner, or would have to be changed while something else uses them. Changing them could take rights away from the
// owner's pods, and the owner's next upgrade could revert the change.
func (i Installer) shared(ctx context.Context, found, wanted []*unstructured.Unstructured) (map[string]string, error) {
	var problems error
	shared := map[string]string{}
	for _, object := range found {
		name := objectName(object)
		if whose := owner(object); whose != "" {
			problems = errors.Join(problems,
				fmt.Errorf("%s is %s: upgrade Quorate there, or uninstall it there first", name, whose))
			continue
		}
		use, err := i.otherUse(ctx, object)
		if err != nil {
			return nil, err
		}
		if use == nil {
			continue
		}
		shared[name] = use.what
		for _, want := range wanted {
			if objectName(want) == name && !grants(object, want) {
				problems = errors.Join(problems, fmt.Errorf("%s would be changed, but %s: %s", name, use.what, use.fix))
			}
		}
	}
	if problems != nil {
		return nil, &OwnedError{problems}
	}
	return shared, nil
}

// eachDeletable calls do for each installed object that may be deleted, workloads first. It reports the objects that
// must be kept.
func (i Installer) eachDeletable(ctx context.Context, do func(*unstructured.Unstructured) error) error {
	all, err := i.installed(ctx)
	if err != nil {
		return err
	}
	for _, object := range all {
		if whose := owner(object); whose != "" {
			fmt.Fprintf(i.Err, "%s is kept: it is %s\n", objectName(object), whose)
			continue
		}
		use, err := i.otherUse(ctx, object)
		if err != nil {
			return err
		}
		if use != nil {
			fmt.Fprintf(i.Err, "%s is kept: %s; %s\n", objectName(object), use.what, removal(object))
			continue
		}
		if err := do(object); err != nil {
			return err
		}
	}
	return nil
}

// gainsRights reports whether the previous runs had rights in only some namespaces, because an overlay restricted them.
func gainsRights(before []*unstructured.Unstructured) bool {
	is := func(kinds ...string) bool {
		return slices.ContainsFunc(before, func(o *unstructured.Unstructured) bool {
			return slices.Contains(kinds, o.GetKind())
		})
	}
	return is("CronJob", "Deployment") && !is("ClusterRoleBinding")
}
