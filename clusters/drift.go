package clusters

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// compare finds out how the objects that are there differ from those that should be.
func (c *cluster) compare() error {
	c.compareCustom()
	if err := c.readCertificates(); err != nil {
		return err
	}
	if c.state.Record.Token == "" && !c.state.Formed() {
		return nil // nothing is founded yet, so nothing can be other than it should be
	}
	if len(c.state.Objects.Irreplaceable) > 0 {
		return nil // what should be there cannot be told without it
	}
	wanted, err := c.build(decide.StandingRecord(c.state, "unknown"))
	if err != nil {
		return err
	}
	for _, object := range wanted {
		if err := c.compareObject(object); err != nil {
			return err
		}
	}
	return nil
}

// drift notes that an object is not as it should be.
func (c *cluster) drift(id, what string) {
	if c.drifted[id] {
		return
	}
	c.drifted[id] = true
	fact := fmt.Sprintf("%s: %s", strings.Replace(id, "/", " ", 1), what)
	c.state.Objects.Drift = append(c.state.Objects.Drift, fact)
	if !c.shapesPods(id) {
		c.state.Objects.Mendable = append(c.state.Objects.Mendable, fact)
	}
}

// shapesPods reports whether applying an object that is there could make running members others when Kubernetes happens to restart
// them: the template of the pods, and the members' files.
func (c *cluster) shapesPods(id string) bool {
	switch id {
	case "StatefulSet/" + c.names.StatefulSet:
		return c.own.objects[id] != nil
	case "ConfigMap/" + c.names.ConfigMap:
		return c.state.Record.Token != ""
	}
	return false
}

func (c *cluster) compareCustom() {
	what := c.declarationDrift()
	if what == "" {
		return
	}
	c.state.Objects.DeclarationDiffers = true
	c.drift(v1alpha1.Kind+"/"+c.target.cluster.Name, what)
}

func (c *cluster) compareObject(wanted objects.Object) error {
	id := wanted.Kind + "/" + wanted.Name
	live := c.own.objects[id]
	if live == nil {
		c.drift(id, "missing")
		return nil
	}
	owned, err := kube.Owned(live)
	if err != nil {
		return err
	}
	paths, err := objects.Differences(wanted.Apply, owned)
	if err != nil {
		return fmt.Errorf("compare %s: %w", id, err)
	}
	if len(paths) > 0 {
		c.drift(id, "changed at "+summarize(paths))
	}
	return nil
}

// summarize names the first few paths.
func summarize(paths []string) string {
	const few = 3
	if len(paths) <= few {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:few], ", "), len(paths)-few)
}

// build makes the objects of the cluster for a record.
func (c *cluster) build(record decide.Record) ([]objects.Object, error) {
	voters := len(record.Members)
	if c.state.Membership.Known {
		voters = max(len(c.state.Membership.Voters()), 1)
	}
	return objects.Build(objects.Input{
		Cluster: c.buildable, Record: record, Voters: voters, Certificates: c.certificates,
	})
}

// readCertificates reads the certificates from the Secrets that are there, and makes anew what is missing or worn out. A
// certificate authority that is gone is made anew only if no member is there to depend on the old one.
func (c *cluster) readCertificates() (err error) {
	if c.target.cluster.Spec.TLS.Mode != v1alpha1.TLSManaged {
		return nil
	}
	present := objects.ReadCertificates(&c.target.cluster, c.own.secrets())
	unusable := present.CheckAuthority(c.state.Now)
	switch {
	case unusable == nil:
		c.certificates, _, err = present.Renew(&c.target.cluster, c.state.Now)
	case len(c.own.pods) == 0:
		c.certificates, err = objects.NewCertificates(&c.target.cluster, c.state.Now)
	default:
		c.certificates = present
		c.state.Objects.Irreplaceable = append(c.state.Objects.Irreplaceable, fmt.Sprintf("Secret %s: %v", c.names.AuthoritySecret, unusable))
	}
	return err
}
