// Package cluster is a client for the sandbox's API server. It applies the objects that every sandbox has, and checks
// whether nodes, DNS and Services work.
package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Objects contains the objects that every sandbox has, as YAML documents.
//
//go:embed objects.yaml
var Objects string

// namespace is the namespace of the sandbox's own pods.
const namespace = "kube-system"

// Cluster is a client for a sandbox's API server.
type Cluster struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

// New creates a client from a kubeconfig file.
func New(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create an API server client: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create an API server client: %w", err)
	}
	return &Cluster{typed: typed, dynamic: untyped}, nil
}

// Ready returns nil if the API server is ready, or else an error with the reason.
func (c *Cluster) Ready(ctx context.Context) error {
	_, err := c.typed.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// Apply applies objects, given as YAML documents.
func (c *Cluster) Apply(ctx context.Context, objects io.Reader) error {
	decoder := yaml.NewYAMLOrJSONDecoder(objects, 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode the objects: %w", err)
		}
		// The guess is right for all kinds that are used here.
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		_, err = c.dynamic.Resource(resource).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), &object,
			metav1.ApplyOptions{FieldManager: "quorate-sandbox", Force: true})
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// NodeStatus is the status of a node as reported by the API server.
type NodeStatus struct {
	Ready   bool
	Reason  string // the reason if the node is not ready
	Version string // version of the node's kubelet
}

// Nodes returns the registered nodes by name.
func (c *Cluster) Nodes(ctx context.Context) (map[string]NodeStatus, error) {
	list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := map[string]NodeStatus{}
	for _, node := range list.Items {
		nodes[node.Name] = statusOf(node)
	}
	return nodes, nil
}

func statusOf(node corev1.Node) NodeStatus {
	status := NodeStatus{Reason: "the kubelet has not reported the node's state " +
		"yet", Version: node.Status.NodeInfo.KubeletVersion}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			status.Ready = condition.Status == corev1.ConditionTrue
			status.Reason = condition.Message
		}
	}
	return status
}

// NodeReady returns nil if the node is ready, or else an error with the reason.
func (c *Cluster) NodeReady(ctx context.Context, name string) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	node, registered := nodes[name]
	if !registered {
		return fmt.Errorf("node %s has not registered", name)
	}
	if !node.Ready {
		return fmt.Errorf("node %s is not ready: %s", name, node.Reason)
	}
	return nil
}

// PodNetwork returns nil if a pod on the node can reach the server behind a Service by name, whichever node the server
// runs on. Otherwise, it returns an error with the reason. This requires DNS, the service proxy and the pod network to
// work.
func (c *Cluster) PodNetwork(ctx context.Context, node string) error {
	pods, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=probe-client",
		FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return fmt.Errorf("list the probes on %s: %w", node, err)
	}
	why := fmt.Errorf("no probe is running on %s", node)
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			why = fmt.Errorf("pod %s on %s is %s%s", pod.Name, node, pod.Status.Phase, waiting(pod))
			continue
		}
		_, err := c.typed.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
			Name(pod.Name + ":8080").SubResource("proxy").DoRaw(ctx)
		if err == nil {
			return nil
		}
		why = fmt.Errorf("reach Service probe-server from pod %s on %s: %w", pod.Name, node, err)
	}
	return why
}

func waiting(pod corev1.Pod) string {
	for _, container := range pod.Status.ContainerStatuses {
		if w := container.State.Waiting; w != nil {
			return fmt.Sprintf(" (%s %s)", w.Reason, w.Message)
		}
	}
	return ""
}
