package install

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/deploy"
)

// account is the display name of the service account of the runs.
const account = "ServiceAccount " + deploy.Namespace + "/quorate"

// use describes how something other than this installation uses a role or binding.
type use struct {
	// what is a clause that names the users. fix describes what to do before the object can be changed.
	what, fix string
}

// otherUse returns how something other than this installation uses a role or binding, or nil if nothing else uses it.
// If a list request is forbidden, the use is unknown. This also counts as a use, because the object must not be changed
// or deleted.
func (i Installer) otherUse(ctx context.Context, object *unstructured.Unstructured) (*use, error) {
	var users []string
	switch object.GetKind() {
	case "ClusterRoleBinding":
		users = otherSubjects(object)
	case "ClusterRole":
		for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
			bound, err := i.otherBindings(ctx, kind, object)
			if apierrors.IsForbidden(err) {
				return &use{fmt.Sprintf("it is unknown what uses it: %s", err), "grant this right"}, nil
			}
			if err != nil {
				return nil, err
			}
			users = append(users, bound...)
		}
	}
	if len(users) == 0 {
		return nil, nil //nolint:nilnil // no other use is not an error
	}
	return &use{"it is used by " + shortList(users),
		"upgrade or uninstall Quorate there first, or bind these accounts to a different role"}, nil
}

// removal returns how to remove a kept role or binding manually.
func removal(object *unstructured.Unstructured) string {
	verb, condition := "delete", "once nothing uses it"
	if object.GetKind() == "ClusterRoleBinding" {
		verb, condition = "edit", "to remove the subject "+account
	}
	return fmt.Sprintf("%s, run kubectl %s %s %s", condition, verb, strings.ToLower(object.GetKind()), object.GetName())
}

// otherBindings returns the bindings of the given kind to a ClusterRole that belong to another owner, or have subjects
// other than this installation's service account.
func (i Installer) otherBindings(ctx context.Context, kind string, role *unstructured.Unstructured) ([]string, error) {
	like := &unstructured.Unstructured{}
	like.SetAPIVersion(role.GetAPIVersion())
	like.SetKind(kind)
	bindings, err := i.Client.Installed(ctx, like)
	if err != nil {
		return nil, err
	}
	var others []string
	for n := range bindings {
		binding := &bindings[n]
		binding.SetKind(kind)
		boundKind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		boundName, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		if boundKind != role.GetKind() || boundName != role.GetName() {
			continue
		}
		subjects := otherSubjects(binding)
		if whose := owner(binding); whose != "" {
			subjects = []string{whose}
		}
		if len(subjects) > 0 {
			others = append(others, fmt.Sprintf("%s (%s)", objectName(binding), shortList(subjects)))
		}
	}
	return others, nil
}

// otherSubjects returns the display names of a binding's subjects, except this installation's service account.
func otherSubjects(binding *unstructured.Unstructured) []string {
	var others []string
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, s := range subjects {
		content, _ := s.(map[string]any)
		subject := &unstructured.Unstructured{Object: map[string]any{
			"kind":     content["kind"],
			"metadata": map[string]any{"name": content["name"], "namespace": content["namespace"]},
		}}
		if name := objectName(subject); name != account {
			others = append(others, name)
		}
	}
	return others
}

// shortList joins names. If there are more than three, it lists three of them and the number of the others.
func shortList(names []string) string {
	const most = 3
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// grants reports whether a role or binding already grants the rights that an installation needs.
func grants(live, wanted *unstructured.Unstructured) bool {
	if live.GetKind() == "ClusterRole" {
		return reflect.DeepEqual(live.Object["rules"], wanted.Object["rules"])
	}
	have, _, _ := unstructured.NestedSlice(live.Object, "subjects")
	want, _, _ := unstructured.NestedSlice(wanted.Object, "subjects")
	return reflect.DeepEqual(live.Object["roleRef"], wanted.Object["roleRef"]) &&
		!slices.ContainsFunc(want, func(subject any) bool {
			return !slices.ContainsFunc(have, func(h any) bool { return reflect.DeepEqual(h, subject) })
		})
}
