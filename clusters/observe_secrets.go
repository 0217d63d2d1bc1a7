package clusters

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
)

// hides reports whether kind is Secret and the cluster's Secrets could not be listed. A read-only run may lack the
// right to list Secrets. It then makes no assumptions about them, and reads by name only the Secret required to ask
// etcd.
func (c *cluster) hides(kind string) bool { return kind == "Secret" && c.hidden != nil }

// findOwnSecret reads Quorate's own Secret by name if Secrets cannot be listed. The right to read this Secret is
// sufficient to ask etcd.
func (c *cluster) findOwnSecret(ctx context.Context) error {
	if c.hidden == nil || !c.hasTLS() {
		return nil
	}
	id := objects.Identity{Kind: "Secret", Name: c.names.OwnSecret}
	object, err := c.kube().Look(ctx, id.Kind, c.target.Cluster.Namespace, id.Name)
	switch {
	case kube.NeedsSetup(err):
		c.ownHidden = err
	case err != nil:
		return err
	case object == nil:
	case c.made(object):
		c.own.Objects[id.Kind+"/"+id.Name] = object
	default:
		c.foreign(id)
	}
	c.state.Unseen = append(c.state.Unseen, c.unseenSecrets())
	return nil
}

// unseenSecrets returns a message about the Secrets that were not read and the facts that are therefore unknown.
func (c *cluster) unseenSecrets() string {
	const unknown = "so it is not known whether they exist or whether certificates are valid"
	if c.ownHidden != nil {
		return fmt.Sprintf("its Secrets could not be read (%v), %s. etcd was not contacted", c.ownHidden, unknown)
	}
	return fmt.Sprintf("only Secret %s could be read (%v), %s", c.names.OwnSecret, c.hidden, unknown)
}

// whyNoClient returns the reason why etcd cannot be asked: Quorate's own Secret may not be read or is missing.
func (c *cluster) whyNoClient() string {
	if c.ownHidden != nil {
		return fmt.Sprintf("etcd was not contacted, because this run may not read Secret %s", c.names.OwnSecret)
	}
	return fmt.Sprintf("Secret %s is missing, so etcd cannot be contacted", c.names.OwnSecret)
}

// errReading is returned for an action in a read-only run.
var errReading = errors.New("a read-only run cannot write")
