// Package provisioner provisions a node's volumes as persistent volumes of type local, which are directories on the
// node's disk. Unlike hostPath volumes, local volumes are bound to their node and support a pod's fsGroup.
package provisioner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Name is the provisioner's name in storage classes.
const Name = "quorate.dev/sandbox-local"

// selectedNode is the annotation in which the scheduler records the node that it has selected for a claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// Run provisions volumes in dir for claims that are scheduled to node, until ctx is done.
func Run(ctx context.Context, kubeconfig, node, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create an API server client: %w", err)
	}
	// After a failure, provisioning is retried soon.
	retry := workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 5*time.Second)
	controller.NewProvisionController(ctx, client, Name, local{node: node, dir: dir},
		controller.LeaderElection(false), // each node has a provisioner for its own claims
		controller.Threadiness(16),
		controller.RateLimiter(retry),
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
		controller.CreateProvisionedPVInterval(100*time.Millisecond),
		controller.CreateProvisionedPVRetryCount(100),
	).Run(ctx)
	return nil
}

type local struct{ node, dir string }

// ShouldProvision reports whether the claim is scheduled to this node.
func (l local) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[selectedNode] == l.node
}

// ShouldDelete reports whether the volume is on this node and has exactly the path that Provision would choose. The
// path is checked because it comes from the API.
func (l local) ShouldDelete(_ context.Context, volume *corev1.PersistentVolume) bool {
	return volume.Spec.Local != nil && volume.Spec.Local.Path == filepath.Join(l.dir, volume.Name) && l.holds(volume)
}

func (l local) holds(volume *corev1.PersistentVolume) bool {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == corev1.LabelHostname && len(expression.Values) == 1 && expression.Values[0] == l.node {
				return true
			}
		}
	}
	return false
}

// Provision creates the directory and returns a volume for it.
func (l local) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(l.dir, options.PVName)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished,
			fmt.Errorf("create the directory of volume %s: %w", options.PVName, err)
	}
	slog.Info("volume created", "volume", options.PVName, "claim", options.PVC.Namespace+"/"+options.PVC.Name)
	return l.volume(options, path), controller.ProvisioningFinished, nil
}

func (l local) volume(options controller.ProvisionOptions, path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{l.node},
					}},
				}},
			}},
		},
	}
}

// Delete removes the volume's directory with all its content.
func (l local) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(volume.Spec.Local.Path); err != nil {
		return fmt.Errorf("remove the directory of volume %s: %w", volume.Name, err)
	}
	slog.Info("volume removed", "volume", volume.Name)
	return nil
}
