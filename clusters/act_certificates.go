package clusters

import (
	"context"
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/report"
)

// renewCertificates writes the Secrets whose certificates are worn, with the certificates that were issued when the
// Secrets were read. It ignores the spec and the record.
func (c *cluster) renewCertificates(ctx context.Context) (report.Outcome, error) {
	if c.own.Custom == nil {
		return report.Outcome{}, fmt.Errorf("renew the certificates of %s: "+
			"its custom resource, which owns them, has been deleted", c.target.Key())
	}
	worn := map[string]bool{}
	for _, certificate := range c.state.WornCertificates() {
		worn[certificate.Secret] = !certificate.CA
	}
	owner := c.target.Cluster.DeepCopy()
	owner.UID = c.own.Custom.UID
	leaves, err := objects.Leaves(objects.Input{Cluster: owner, Certificates: c.certificates})
	if err != nil {
		return report.Outcome{}, err
	}
	var applied []string
	for _, leaf := range leaves {
		if !worn[leaf.Name] || c.own.Objects["Secret/"+leaf.Name] == nil {
			continue
		}
		if _, err := c.applyOne(ctx, leaf); err != nil {
			return report.Outcome{}, err
		}
		applied = append(applied, leaf.String())
	}
	return report.Outcome{Changed: len(applied) > 0, Detail: "applied " + strings.Join(applied, ", ")}, nil
}
