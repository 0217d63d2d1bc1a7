package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// heartbeat is the interval between lease renewals, which is well below the sandbox's grace period.
const heartbeat = 2 * time.Second

// node is a node with unlimited capacity.
type node struct {
	api           kubernetes.Interface
	name, address string
}

// closeOthers marks all other nodes as unschedulable.
func (n node) closeOthers(ctx context.Context) error {
	nodes, err := n.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, other := range nodes.Items {
		if other.Name == n.name {
			continue
		}
		_, err := n.api.CoreV1().Nodes().Patch(ctx, other.Name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("mark node %s as unschedulable: %w", other.Name, err)
		}
	}
	return nil
}

// register creates the node and reports it as ready.
func (n node) register(ctx context.Context) error {
	nodes := n.api.CoreV1().Nodes()
	labels := map[string]string{corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH, corev1.LabelTopologyZone: "zone-" + n.name}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", n.name, err)
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1M"), corev1.ResourceMemory: resource.MustParse("1P"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1P"), corev1.ResourcePods: resource.MustParse("1M"),
	}
	now := metav1.Now()
	status := corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address},
			{Type: corev1.NodeHostName, Address: n.name}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "FleetReady",
			LastHeartbeatTime: now, LastTransitionTime: now}},
		NodeInfo: corev1.NodeSystemInfo{OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			KubeletVersion: "v0-fleet"},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = nodes.Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("report node %s as ready: %w", n.name, err)
	}
	return nil
}

// stayAlive renews the node's lease until ctx is done.
func (n node) stayAlive(ctx context.Context) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if err := n.renew(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (n node) renew(ctx context.Context) error {
	leases := n.api.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, duration := metav1.NowMicro(), int32(40)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &duration, RenewTime: &now}
	lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: spec}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	case err == nil:
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", n.name, err)
	}
	return nil
}
