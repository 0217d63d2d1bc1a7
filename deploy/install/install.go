// Package install installs Quorate in a Kubernetes cluster, in one of the modes of package deploy, and uninstalls it.
package install

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/internal/printable"
)

// Installer installs and uninstalls Quorate in a Kubernetes cluster. It does not change any etcd clusters.
type Installer struct {
	Client *kube.Client
	// Out receives a line for each changed object. Err receives a line for each object that is kept, and a line
	// whenever Installer has to wait.
	Out, Err io.Writer
}

// Install applies the objects of a mode, as returned by deploy.Render, and deletes the objects of other modes. It
// reports both, as well as any rights that runs gain and any settings that they lose. It returns an OwnedError if an
// object belongs to another owner, or if Install would change rights that something else uses.
func (i Installer) Install(ctx context.Context, texts []string) error {
	var objects []*unstructured.Unstructured
	for _, text := range texts {
		object, err := parseObject(text)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	before, err := i.findInstalled(ctx)
	if err != nil {
		return err
	}
	shared, err := i.shared(ctx, before, objects)
	if err != nil {
		return err
	}
	configs, err := i.mountedConfigs(ctx, before)
	if err != nil {
		return err
	}
	applied := map[string]bool{}
	for _, object := range objects {
		if use := shared[objectName(object)]; use != "" {
			applied[objectName(object)] = true
			fmt.Fprintf(i.Err, "%s is kept unchanged: %s\n", objectName(object), use)
			continue
		}
		if err := i.Client.Install(ctx, object); err != nil {
			return err
		}
		applied[objectName(object)] = true
		fmt.Fprintf(i.Out, "applied %s\n", objectName(object))
	}
	if err := i.deleteOthers(ctx, applied); err != nil {
		return err
	}
	if gainsRights(before) {
		fmt.Fprintln(i.Out, "the new ClusterRoleBinding gives runs their rights in all namespaces; "+
			"to undo this, run kubectl delete clusterrolebinding quorate")
	}
	if lost := lostSettings(append(before, configs...), objects); len(lost) > 0 {
		fmt.Fprintf(i.Out, "runs no longer have these settings: %s\n", strings.Join(lost, ", "))
	}
	return nil
}

// deleteOthers deletes the objects of other modes that were not applied.
func (i Installer) deleteOthers(ctx context.Context, applied map[string]bool) error {
	all, err := installable()
	if err != nil {
		return err
	}
	for _, object := range all {
		if applied[objectName(object)] {
			continue
		}
		if err := i.uninstall(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func parseObject(text string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	return object, nil
}

// objectName returns the display name of an object.
func objectName(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return printable.Line(o.GetKind() + " " + name)
}
