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

// noteRefusal keeps an error that says that a right is missing.
func (c *cluster) noteRefusal(err error) {
	if errors.Is(err, kube.ErrForbidden) {
		c.forbidden.Store(err.Error())
	}
}

// rightMissing is why nobody here may reach the pods, in the API server's words; empty if that has
// not been said.
func (c *cluster) rightMissing() string {
	said, _ := c.forbidden.Load().(string)
	_, words, _ := strings.Cut(said, " is forbidden: ")
	return podstate.OneLine(words)
}

// dialer connects to the client port of a member's pod, directly or through the API server. It knows the pods that
// there are now: a connection that is kept may dial again once the cluster was left.
func (c *cluster) dialer() func(ctx context.Context, name string) (net.Conn, error) {
	pods := inventory.Cluster{Pods: slices.Clip(c.own.Pods)}
	return func(ctx context.Context, name string) (net.Conn, error) {
		pod := pods.Pod(name)
		if pod == nil {
			return nil, fmt.Errorf("pod %s is gone", name)
		}
		if c.live.options.PortForward {
			conn, err := c.kube().PortForward(ctx, pod.Namespace, pod.Name, objects.ClientPort)
			c.noteRefusal(err)
			return conn, err
		}
		return kube.Direct(ctx, pod.Status.PodIP, objects.ClientPort)
	}
}
