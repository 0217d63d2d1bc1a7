package clusters

import (
	"context"
	"fmt"
	"net"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
)

// dial connects to the client port of a member's pod, directly or through the API server.
func (c *cluster) dial(ctx context.Context, name string) (net.Conn, error) {
	pod := c.own.pod(name)
	if pod == nil {
		return nil, fmt.Errorf("pod %s is gone", name)
	}
	if c.live.options.PortForward {
		return c.live.kube.PortForward(ctx, pod.Namespace, pod.Name, objects.ClientPort)
	}
	return kube.Direct(ctx, pod.Status.PodIP, objects.ClientPort)
}
