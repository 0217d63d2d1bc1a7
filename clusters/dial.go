package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
)

// noteRefusal stores err if it reports a missing right.
func (c *cluster) noteRefusal(err error) {
	if errors.Is(err, kube.ErrForbidden) {
		c.forbidden.Store(err.Error())
	}
}

// rightMissing returns the API server's message about a missing right to access the pods, or "".
func (c *cluster) rightMissing() string {
	said, _ := c.forbidden.Load().(string)
	_, words, _ := strings.Cut(said, " is forbidden: ")
	return podstate.OneLine(words)
}

// dialer returns a function that connects to an endpoint, or to the client port of a member's pod, directly or through
// the API server.
// The function keeps a reference to the current pods, because an open connection may redial after Leave.
func (c *cluster) dialer() func(ctx context.Context, name string) (net.Conn, error) {
	pods := inventory.Cluster{Pods: slices.Clip(c.own.Pods)}
	return func(ctx context.Context, name string) (net.Conn, error) {
		if strings.Contains(name, ":") { // pods' names do not
			return c.dialEndpoint(ctx, name)
		}
		pod := pods.Pod(name)
		if pod == nil {
			return nil, fmt.Errorf("pod %s no longer exists", name)
		}
		if c.live.options.PortForward {
			conn, err := c.kube().PortForward(ctx, pod.Namespace, pod.Name, objects.ClientPort)
			c.noteRefusal(err)
			return conn, err
		}
		return kube.Direct(ctx, pod.Status.PodIP, objects.ClientPort)
	}
}
