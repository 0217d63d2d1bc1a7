package clusters

import (
	"context"
	"fmt"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// readCertificates reads the certificates from the existing Secrets and creates new certificates to replace missing or
// worn certificates. It replaces a missing CA only if members do not depend on the old CA, and never issues
// certificates from a CA that members do not trust.
func (c *cluster) readCertificates(ctx context.Context) (err error) {
	switch {
	case !c.hasTLS():
		return nil
	case c.hides("Secret"):
		c.seeProof()
		return nil
	}
	present := objects.ReadCertificates(&c.target.Cluster, c.own.Secrets())
	if c.lacksCA {
		present.CA = c.adopted.CA // unusable if it was refused
	}
	present.ClientIsRoot = c.clientStaysRoot(ctx, present)
	c.certificates, c.state.Certificates = present, present.Validities(&c.target.Cluster)
	unusable := present.CheckCA(c.state.Now)
	switch {
	case unusable == nil:
	case c.lacksCA:
		c.seeCA(present, "")
		c.state.Objects.Irreplaceable = append(c.state.Objects.Irreplaceable, c.caRefused)
		return nil
	case c.dependsOnCA():
		c.seeCA(present, "")
		c.state.Objects.Irreplaceable = append(c.state.Objects.Irreplaceable,
			fmt.Sprintf("Secret %s: %v", c.names.CASecret, unusable))
		return nil
	default:
		if c.certificates, err = objects.NewCertificates(&c.target.Cluster, c.state.Now); err != nil {
			return err
		}
		c.certificates.ClientIsRoot = present.ClientIsRoot
	}
	c.seeCA(present, pki.Fingerprint(c.certificates.CA.Certificate))
	if c.state.Distrusted() == "" {
		c.certificates, _, err = c.certificates.Renew(&c.target.Cluster, c.state.Now)
	}
	return err
}

// clientStaysRoot reports whether applications keep a certificate that names etcd's superuser and was issued before
// Quorate had its own certificate. If authentication is or may be enabled, applications would lose access under a
// different name. If it is disabled, every certificate has full access, so the name does not matter.
func (c *cluster) clientStaysRoot(ctx context.Context, present objects.Certificates) bool {
	if !present.NamesRoot() {
		return false
	}
	if !c.state.Membership.Known {
		return true
	}
	on, err := c.live.etcd.AuthEnabled(ctx, c.etcd(c.asked(), c.clientTLS()))
	c.state.ClientIsRoot = err == nil && on
	return err != nil || on
}

// hasTLS reports whether the cluster runs with TLS. It ignores a declaration that has problems, because Quorate does
// not act on it.
func (c *cluster) hasTLS() bool {
	if c.own.Custom != nil && len(c.target.Problems) > 0 {
		return c.own.Custom.Spec.TLS.Mode == v1alpha1.TLSManaged
	}
	return c.target.Cluster.Spec.TLS.Mode == v1alpha1.TLSManaged
}

// seeCA records the CA that issues certificates, and the CAs that are trusted.
func (c *cluster) seeCA(present objects.Certificates, issuer string) {
	c.state.CA = decide.CA{Secret: issuer, Mounted: present.Mounted()}
	c.seeProof()
}

// anyAnswers reports whether any pod responds as an etcd member.
func (c *cluster) anyAnswers() bool {
	answers := lists(c.state.Membership, func(m decide.Member) bool { return m.Answers })
	for _, r := range c.state.Replicas {
		answers = answers || r.ClusterID != 0
	}
	return answers
}

// seeProof records the CA that verified the responding members.
func (c *cluster) seeProof() {
	if tls := c.clientTLS(); tls != nil && c.anyAnswers() {
		c.state.CA.Proven = pki.Fingerprint(tls.CA)
	}
}
