package clusters

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
)

// hides reports whether the Secrets of the cluster could not be listed, for lack of the right to.
// Who only reads may lack it: nothing is concluded about them then, and none is asked for by name
// but the one that etcd is asked with.
func (c *cluster) hides(kind string) bool { return kind == "Secret" && c.hidden != nil }

// findOwnSecret reads the Secret of passes by its name, where Secrets cannot be listed. A right to
// this one alone is enough to ask etcd.
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

// unseenSecrets says which Secrets were not looked at, and what is not known for that.
func (c *cluster) unseenSecrets() string {
	const unknown = "so it is not known whether they are there and certificates are valid"
	if c.ownHidden != nil {
		return fmt.Sprintf("its Secrets were not looked at (%v), %s, and etcd was not asked", c.ownHidden, unknown)
	}
	return fmt.Sprintf("of its Secrets only %s was looked at (%v), %s", c.names.OwnSecret, c.hidden, unknown)
}

// whyNoClient is why etcd cannot be asked without the Secret of passes.
func (c *cluster) whyNoClient() string {
	if c.ownHidden != nil {
		return fmt.Sprintf("etcd was not asked, since Secret %s may not be read here", c.names.OwnSecret)
	}
	return fmt.Sprintf("Secret %s is missing, so etcd cannot be asked", c.names.OwnSecret)
}

// errReading is what an action meets that must not be: who only reads does not act.
var errReading = errors.New("nothing is written by what only reads")
