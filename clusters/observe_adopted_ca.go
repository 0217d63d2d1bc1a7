package clusters

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/decide"
)

// takesOverCA reports whether the certificates must be issued from the CA of the cluster to adopt, because the new
// cluster does not have that CA yet: the adoption is beginning, or a pass was interrupted after it began. Once pods
// run, they depend on the new cluster's own copy of the CA.
func (c *cluster) takesOverCA() bool {
	adopt := c.target.Cluster.Spec.Adopt
	switch {
	case adopt == nil || adopt.CASecretName == "" || !c.hasTLS() || c.state.Declared.Lifecycle != decide.Running:
		return false
	case c.state.CAInUse() || len(c.own.Pods) > 0:
		return false
	case c.state.BeginsAdoption():
		return !adopt.Abandon
	case !c.mayHaveGuests() || c.hides("Secret"):
		return false
	}
	present := objects.ReadCertificates(&c.target.Cluster, c.own.Secrets())
	recorded := c.state.Record.CA
	return present.CheckCA(c.state.Now) != nil || recorded != "" && pki.Fingerprint(present.CA.Certificate) != recorded
}

// takeOverCA reads the CA of the cluster to adopt, if that CA must be taken over, and issues certificates from it. The
// certificates are also needed to query that cluster.
func (c *cluster) takeOverCA(ctx context.Context) error {
	c.adopted, c.caRefused = objects.Certificates{}, ""
	if !c.takesOverCA() {
		return nil
	}
	name := c.target.Cluster.Spec.Adopt.CASecretName
	object, err := c.kube().Look(ctx, "Secret", c.target.Cluster.Namespace, name)
	if err != nil && !kube.NeedsSetup(err) {
		return err
	}
	issued, why := c.issueFrom(object, err)
	if why == nil {
		c.adopted = issued
		return nil
	}
	c.caRefused = fmt.Sprintf("the CA of cluster %s cannot be taken over: Secret %s %v",
		c.state.Declared.Adoption.ClusterID, name, why)
	return nil
}

// issueFrom returns certificates issued from the CA in a Secret. object is nil if the Secret does not exist. unreadable
// is the error if this run cannot read the Secret.
func (c *cluster) issueFrom(object metav1.Object, unreadable error) (objects.Certificates, error) {
	secret, is := object.(*corev1.Secret)
	switch {
	case unreadable != nil:
		return objects.Certificates{}, fmt.Errorf("cannot be read by this run: %w", unreadable)
	case !is:
		return objects.Certificates{}, errors.New("does not exist; create it with kubectl create secret tls")
	}
	issued, err := objects.TakeOver(&c.target.Cluster, secret.Data, c.state.Now)
	if err != nil {
		return objects.Certificates{}, fmt.Errorf("cannot be used: %w", err)
	}
	read, recorded := pki.Fingerprint(issued.CA.Certificate), c.state.Record.CA
	if recorded != "" && !c.state.BeginsAdoption() && read != recorded {
		return objects.Certificates{}, fmt.Errorf("contains CA %s, but the recorded CA is %s", read, recorded)
	}
	return issued, nil
}
