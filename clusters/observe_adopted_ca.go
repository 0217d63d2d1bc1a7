package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/decide"
)

// minRemaining is how long the CA of a cluster to adopt must remain valid, so that the adoption can be completed and
// the CA replaced before it expires.
const minRemaining = 30 * 24 * time.Hour

// lacksSourceCA reports whether the cluster does not have the CA that the guests trust: the adoption is beginning, a
// pass was interrupted after it began, or the new cluster's own copy has been lost, has expired, or was replaced while
// no pod depends on it.
func (c *cluster) lacksSourceCA() bool {
	if !c.hasTLS() || c.state.Declared.Lifecycle != decide.Running {
		return false
	}
	if c.state.BeginsAdoption() {
		return !c.state.Declared.Adoption.Abandon
	}
	if !c.mayHaveGuests() && len(c.state.Record.Guests) == 0 || c.hides("Secret") {
		return false
	}
	present := objects.ReadCertificates(&c.target.Cluster, c.own.Secrets())
	if present.CheckCA(c.state.Now) != nil {
		return true
	}
	recorded := c.state.Record.CA
	another := recorded != "" && pki.Fingerprint(present.CA.Certificate) != recorded
	return another && !c.dependsOnCA() // if pods depend on it, see the rule CAChanged
}

// dependsOnCA reports whether pods depend on the cluster's own copy of the CA.
func (c *cluster) dependsOnCA() bool { return c.state.CAInUse() || len(c.own.Pods) > 0 }

// takeOverCA reads the CA of the cluster to adopt, if the new cluster lacks it, and issues certificates from it. The
// certificates are also needed to query that cluster. Nothing is read if the declaration is invalid or not allowed.
func (c *cluster) takeOverCA(ctx context.Context) error {
	c.adopted, c.caRefused = objects.Certificates{}, ""
	if c.lacksCA = c.lacksSourceCA(); !c.lacksCA {
		return nil
	}
	name := objects.AdoptedCA(&c.target.Cluster)
	switch {
	case !c.checked():
		c.caRefused = "the CA of the guests is missing. It is taken over only if git declares the cluster, and its " +
			"spec is valid and allowed"
		return nil
	case name == "":
		c.caRefused = "the CA of the guests is missing, and git does not declare it: declare spec.adopt again"
		return nil
	}
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
	if secret.Type != corev1.SecretTypeTLS {
		return objects.Certificates{}, fmt.Errorf("has the type %s, not %s", secret.Type, corev1.SecretTypeTLS)
	}
	until := c.state.Now
	if c.state.BeginsAdoption() {
		until = until.Add(minRemaining)
	}
	issued, err := objects.TakeOver(&c.target.Cluster, secret.Data, c.state.Now, until)
	if err != nil {
		return objects.Certificates{}, fmt.Errorf("cannot be used: %w", err)
	}
	read, recorded := pki.Fingerprint(issued.CA.Certificate), c.state.Record.CA
	if bound := recorded != "" || c.dependsOnCA(); bound && read != recorded && !c.state.BeginsAdoption() {
		return objects.Certificates{}, fmt.Errorf("contains CA %s, but the recorded CA is %s", read,
			cmp.Or(recorded, "unknown"))
	}
	return issued, nil
}
