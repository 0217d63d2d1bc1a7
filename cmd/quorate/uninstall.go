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
		Short: "Delete what runs Quorate, and leave every etcd cluster as it is",
		Long: `Uninstall deletes what "quorate install --mode" has applied, in whatever mode: what runs Quorate, its
configuration and, once that has ended what it has begun, its rights. Clusters run on, and nobody looks
after them. The CustomResourceDefinition stays, since deleting it would delete every EtcdCluster; so does
the namespace ` + deploy.Namespace + `, with what else is in it, and what belongs to a release of Helm, or
to a Quorate in another namespace.`,
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
			ours := keepTheirs(std, all)
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
	c.Flags().BoolVar(&printOnly, "print", false, "print what would be deleted, and delete nothing")
	return c
}

// uninstallAll deletes what runs Quorate, and once that has ended, its rights: what is under way is finished, or left
// at a step that somebody can go on from, and the leases are given up.
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

// longestEnd is how long what runs Quorate may take to end: more than deploy/loop gives its pods.
const longestEnd = 2 * time.Minute

// awaitEnd waits until no pod runs Quorate any more.
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
			fmt.Fprintf(std.err, "waiting until pods have ended what they have begun: %d\n", left)
		}
		return left == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || bound.Err() == nil:
		return fmt.Errorf("wait until pods have ended; their rights are still there, and another quorate uninstall "+
			"deletes them: %w", err)
	}
	fmt.Fprintf(std.err, "after %s there are still pods, %d, which lose their rights now\n", longestEnd, left)
	return nil
}

// uninstall deletes an object, and says so if it was there.
func uninstall(ctx context.Context, std streams, client *kube.Client, object *unstructured.Unstructured) error {
	was, err := client.Uninstall(ctx, object)
	if was {
		fmt.Fprintf(std.out, "deleted %s\n", objectName(object))
	}
	return err
}

// sourceConfigMap matches those that say where clusters are declared: their names end in a hash of what they hold, and
// each other one has left its own.
var sourceConfigMap = regexp.MustCompile(`^quorate-source-[a-z0-9]{10}$`)

// installable are the objects that some mode has, each once and what runs first, but those that stay: the
// CustomResourceDefinition and the namespace; and the ConfigMaps, whose names only the cluster knows.
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

// rank is lower for what runs: it goes before its rights do.
func rank(o *unstructured.Unstructured) int {
	if o.GetKind() == "CronJob" || o.GetKind() == "Deployment" {
		return 0
	}
	return 1
}

// installed are those that are there.
func installed(ctx context.Context, client *kube.Client) ([]*unstructured.Unstructured, error) {
	all, err := there(ctx, client)
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
