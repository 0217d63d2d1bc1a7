package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/deploy"
)

func newUninstall(std streams) *cobra.Command {
	var f kubeFlags
	var printOnly bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall Quorate and leave all etcd clusters unchanged",
		Long: `Uninstall deletes what "quorate install --mode" has applied, in any mode: Quorate's workloads and
configuration and, once its pods have finished, its rights. Clusters keep running without being managed.
The CustomResourceDefinition is kept, because deleting it would delete every EtcdCluster. Also kept are
the namespace ` + deploy.Namespace + `, the other objects in it, and objects that belong to a Helm release or to
a Quorate in another namespace.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := f.client()
			if err != nil {
				return err
			}
			all, err := installed(c.Context(), client)
			if err != nil {
				return err
			}
			ours := skipForeign(std, all)
			if !printOnly {
				return uninstallAll(c.Context(), std, client, ours)
			}
			for _, object := range ours {
				fmt.Fprintln(std.out, objectName(object))
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&printOnly, "print", false, "print what would be deleted, without deleting it")
	return c
}

// uninstallAll deletes the workloads that run Quorate and, after their pods have ended, the rest, such as their rights.
// By then, actions are finished or interrupted at a step from which a later run can continue, and leases are released.
func uninstallAll(ctx context.Context, std streams, client *kube.Client, all []*unstructured.Unstructured) error {
	ended := false
	for _, object := range all {
		if rank(object) > 0 && !ended {
			if err := awaitEnd(ctx, std, client); err != nil {
				return err
			}
			ended = true
		}
		if err := uninstall(ctx, std, client, object); err != nil {
			return err
		}
	}
	return nil
}

// longestEnd is the maximum time for the pods to end, which is more than the grace period in deploy/loop.
const longestEnd = 2 * time.Minute

// awaitEnd waits until no pod runs Quorate.
func awaitEnd(ctx context.Context, std streams, client *kube.Client) error {
	bound, cancel := context.WithTimeout(ctx, longestEnd)
	defer cancel()
	said, left := false, 0
	err := wait.PollUntilContextCancel(bound, time.Second, true, func(ctx context.Context) (bool, error) {
		pods, err := client.Pods(ctx, deploy.Namespace, labels.FormatLabels(objects.OwnLabels()))
		if err != nil {
			return false, err
		}
		left = len(slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		}))
		if left > 0 && !said {
			said = true
			fmt.Fprintf(std.err, "waiting for pods to finish: %d\n", left)
		}
		return left == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || bound.Err() == nil:
		return fmt.Errorf("wait for pods to finish; their rights still exist, and another quorate uninstall "+
			"deletes them: %w", err)
	}
	fmt.Fprintf(std.err, "after %s, %d pods still exist; they now lose their rights\n", longestEnd, left)
	return nil
}

// uninstall deletes an object, and reports it if it existed.
func uninstall(ctx context.Context, std streams, client *kube.Client, object *unstructured.Unstructured) error {
	was, err := client.Uninstall(ctx, object)
	if was {
		fmt.Fprintf(std.out, "deleted %s\n", objectName(object))
	}
	return err
}

// sourceConfigMap matches the ConfigMaps that hold source settings: their names end in a hash of their content, so each
// change has created a new one.
var sourceConfigMap = regexp.MustCompile(`^quorate-source-[a-z0-9]{10}$`)

// installable returns the objects of all modes without duplicates, workloads first. It excludes objects that are kept,
// which are the CustomResourceDefinition and the namespace, and the ConfigMaps, which have to be listed in the cluster.
func installable() ([]*unstructured.Unstructured, error) {
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
}

// rank orders workloads before their rights.
func rank(o *unstructured.Unstructured) int {
	if o.GetKind() == "CronJob" || o.GetKind() == "Deployment" {
		return 0
	}
	return 1
}

// installed returns the installable objects that exist, with the ConfigMaps.
func installed(ctx context.Context, client *kube.Client) ([]*unstructured.Unstructured, error) {
	all, err := findInstalled(ctx, client)
	if err != nil {
		return nil, err
	}
	configMap := &unstructured.Unstructured{}
	configMap.SetAPIVersion("v1")
	configMap.SetKind("ConfigMap")
	configMap.SetNamespace(deploy.Namespace)
	listed, err := client.Installed(ctx, configMap)
	if err != nil {
		return nil, err
	}
	for i := range listed {
		if sourceConfigMap.MatchString(listed[i].GetName()) {
			listed[i].SetGroupVersionKind(configMap.GroupVersionKind())
			all = append(all, &listed[i])
		}
	}
	return all, nil
}
