package install

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/deploy"
)

// Uninstall deletes the installed objects of all modes, except objects that belong to another owner, and roles and
// bindings that something else uses or may use. It first deletes the workloads that run Quorate and waits until their
// pods have terminated. By then, every action has either finished or stopped at a step from which a later run can
// continue, and leases have been released. Uninstall then deletes the other objects, such as roles.
func (i Installer) Uninstall(ctx context.Context) error {
	ended := false
	return i.eachDeletable(ctx, func(object *unstructured.Unstructured) error {
		if rank(object) > 0 && !ended {
			if err := i.awaitEnd(ctx); err != nil {
				return err
			}
			ended = true
		}
		return i.uninstall(ctx, object)
	})
}

// PrintInstalled prints the names of the objects that Uninstall would delete.
func (i Installer) PrintInstalled(ctx context.Context) error {
	return i.eachDeletable(ctx, func(object *unstructured.Unstructured) error {
		_, err := fmt.Fprintln(i.Out, objectName(object))
		return err
	})
}

// longestEnd is the maximum time to wait for the pods to terminate. It is longer than the grace period in deploy/loop.
const longestEnd = 2 * time.Minute

// awaitEnd waits until all pods that run Quorate have terminated.
func (i Installer) awaitEnd(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, longestEnd)
	defer cancel()
	said, left := false, 0
	err := wait.PollUntilContextCancel(bound, time.Second, true, func(ctx context.Context) (bool, error) {
		pods, err := i.Client.Pods(ctx, deploy.Namespace, labels.FormatLabels(objects.OwnLabels()))
		if err != nil {
			return false, err
		}
		left = len(slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		}))
		if left > 0 && !said {
			said = true
			fmt.Fprintf(i.Err, "waiting for pods to finish: %d\n", left)
		}
		return left == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || bound.Err() == nil:
		return fmt.Errorf("wait for pods to finish: %w; their rights were not deleted: run quorate uninstall "+
			"again", err)
	}
	fmt.Fprintf(i.Err, "after %s, %d pods still exist; deleting their rights anyway\n", longestEnd, left)
	return nil
}

// uninstall deletes an object and reports the deletion if the object existed.
func (i Installer) uninstall(ctx context.Context, object *unstructured.Unstructured) error {
	was, err := i.Client.Uninstall(ctx, object)
	if was {
		fmt.Fprintf(i.Out, "deleted %s\n", objectName(object))
	}
	return err
}

// configMapName matches the names of ConfigMaps that contain settings for runs. Each name ends in a hash of the
// content, so every change to the settings creates a new ConfigMap. Earlier versions used the name quorate-source.
var configMapName = regexp.MustCompile(`^quorate-(config|source)-[a-z0-9]{10}$`)

// installable returns the objects of all modes without duplicates, workloads first. It excludes the
// CustomResourceDefinition and the namespace, because they are kept, and the ConfigMaps, because they must be listed in
// the cluster. The objects are rendered once and shared, so callers must not change them.
var installable = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var names []string
	for _, mode := range deploy.Modes() {
		texts, err := deploy.Render(deploy.Options{Mode: mode, NetworkPolicy: true})
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			object, err := parseObject(text)
			if err != nil {
				return nil, err
			}
			stays := slices.Contains([]string{"CustomResourceDefinition", "Namespace", "ConfigMap"}, object.GetKind())
			if name := objectName(object); !stays && !slices.Contains(names, name) {
				all, names = append(all, object), append(names, name)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return all, nil
})

// rank sorts workloads before all other objects.
func rank(o *unstructured.Unstructured) int {
	if o.GetKind() == "CronJob" || o.GetKind() == "Deployment" {
		return 0
	}
	return 1
}

// installed returns the existing objects of all modes, and the existing ConfigMaps that contain settings for runs.
func (i Installer) installed(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := i.findInstalled(ctx)
	if err != nil {
		return nil, err
	}
	configMap := configMaps()
	listed, err := i.Client.Installed(ctx, configMap)
	if err != nil {
		return nil, err
	}
	for n := range listed {
		if configMapName.MatchString(listed[n].GetName()) {
			listed[n].SetGroupVersionKind(configMap.GroupVersionKind())
			all = append(all, &listed[n])
		}
	}
	return all, nil
}
