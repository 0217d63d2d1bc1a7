package clusters

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/decide"
)

const year = 365 * 24 * time.Hour

// running returns a stage with a cluster that has formed and has pods.
func running(t *testing.T) *stage {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.makePods()
	return s
}

// caMade creates a CA that appears to have been created at the given time.
func caMade(t *testing.T, at time.Time) *pki.CA {
	t.Helper()
	a, err := pki.NewCA("a", "default", at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// put overwrites the data of a Secret, as a user would.
func (s *stage) put(name string, data map[string][]byte) {
	s.Helper()
	secrets := s.server.Client.CoreV1().Secrets("default")
	secret, err := secrets.Get(s.Context(), name, metav1.GetOptions{})
	if err == nil {
		secret.Data = data
		_, err = secrets.Update(s.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) putCA(a *pki.CA) {
	s.Helper()
	s.put("a-ca", map[string][]byte{"ca.crt": a.Pair().Certificate, "ca.key": a.Pair().Key})
}

// scale changes the number of replicas of the StatefulSet.
func (s *stage) scale(replicas string) {
	s.Helper()
	s.patchSet(`{"spec":{"replicas":` + replicas + `}}`)
}

func (s *stage) patchSet(patch string) {
	s.Helper()
	if _, err := s.server.Client.AppsV1().StatefulSets("default").Patch(s.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// decided expects a decision by the given rule with a message that contains the given text.
func (s *stage) decided(rule, message string) *cluster {
	s.Helper()
	c := s.observe()
	if d := decide.Decide(c.state); d.Rule != rule || !strings.Contains(d.Message, message) {
		s.Fatalf("%s; want %s: …%s…", d, rule, message)
	}
	return c
}

func secretOf(c *cluster, name string) map[string][]byte {
	if secret := inventory.Get[*corev1.Secret](c.own, "Secret", name); secret != nil {
		return maps.Clone(secret.Data)
	}
	return nil
}

// versions returns the resource versions of all objects.
func versions(c *cluster) map[string]string {
	all := map[string]string{}
	for id, o := range c.own.Objects {
		all[id] = o.GetResourceVersion()
	}
	return all
}

// TestDifferentCAInSecretBlocksIssuing checks that a different, valid CA in the Secret is reported, and that nothing
// is issued from that CA while the old CA is still trusted.
func TestDifferentCAInSecretBlocksIssuing(t *testing.T) {
	s := running(t)
	before := s.observe()
	own := pki.Fingerprint(secretOf(before, "a-ca")["ca.crt"])
	if before.state.Record.CA != own || own == "" {
		t.Fatalf("the recorded CA is %q, the CA in the Secret is %q", before.state.Record.CA, own)
	}
	ca := secretOf(before, "a-ca")
	s.putCA(caMade(t, time.Now()))
	c := s.decided("CAChanged", "is recorded")
	if drift := c.state.Objects.Drift; len(drift) > 0 {
		t.Errorf("drift: %q", drift)
	}
	late := versions(c)
	s.do(c, decide.ApplyObjects{}, false)
	if now := versions(s.observe()); !maps.Equal(late, now) {
		t.Errorf("objects were written: before %v, after %v", late, now)
	}

	// Restore the CA without its key, and then with it.
	s.put("a-ca", map[string][]byte{"ca.crt": ca["ca.crt"]})
	s.decided("CALost", "the key is missing")
	s.put("a-ca", ca)
	s.do(s.decided("ApplyObjects", "Secret a-ca"), decide.ApplyObjects{}, true) // Quorate owns its fields again
	s.settled(s.observe())
	if now := secretOf(s.observe(), "a-ca"); !maps.EqualFunc(now, ca, bytes.Equal) {
		t.Error("the restored CA has changed")
	}

	// A leaf that trusts a different CA is corrected from the recorded CA.
	server := secretOf(before, "a-server-tls")
	server["ca.crt"] = caMade(t, time.Now()).Pair().Certificate
	s.put("a-server-tls", server)
	s.do(s.decided("ApplyObjects", "Secret a-server-tls"), decide.ApplyObjects{}, true)
	s.settled(s.observe())
}

// TestUnrecordedCAIsRecordedIfAllAgree checks that a missing CA is added to the record only if the Secret, pods and
// members agree on the CA, and that a different CA is rejected.
func TestUnrecordedCAIsRecordedIfAllAgree(t *testing.T) {
	s := running(t)
	c := s.observe()
	own := c.state.Record.CA
	record := c.state.Record
	record.CA = ""
	in, err := c.input(record)
	if err != nil {
		t.Fatal(err)
	}
	c.lease = &leaseHold{live: s.live, lease: leaseOf(s.live.holder.String(), time.Now())}
	if _, err := c.apply(t.Context(), in, func(o objects.Object) bool { return o.Kind == "ConfigMap" }); err != nil {
		t.Fatal(err)
	}
	c = s.observe()
	s.settled(c)
	if c.state.Record.CA != "" || c.state.CA.Secret != own || len(c.state.CA.Mounted) != 1 {
		t.Errorf("the recorded CA is %q, observed %+v", c.state.Record.CA, c.state.CA)
	}
	c.state.Membership = decide.Membership{Known: true, ClusterID: 0xc1, Members: []decide.Member{{ID: 1, Name: "a-0", Answers: true, Started: true}}}
	if c.seeCA(c.certificates, own); c.state.CA.Proven != own {
		t.Errorf("a member has responded, but the proven CA is %q", c.state.CA.Proven)
	}
	if required := decide.RequiredRecord(c.state, ""); required.CA != own {
		t.Errorf("the CA to record is %q", required.CA)
	}
	s.putCA(caMade(t, time.Now()))
	s.decided("CAChanged", "pods mount CA")
}

// TestExpiredCA checks that an expired CA is replaced once all pods are stopped. A new CA is then created, all
// certificates are issued from it, and the members start with their data.
func TestExpiredCA(t *testing.T) {
	s := running(t)
	expired := caMade(t, time.Now().Add(-11*year))
	s.putCA(expired)
	c := s.decided("CALost", "restoring a backup would not help. To get a new CA, stop all pods (lifecycle: Stopped in git, or kubectl -n default scale statefulset a --replicas=0)")
	if c.state.CertificatesValidity() != decide.Expired {
		t.Errorf("the certificates are %s", c.state.CertificatesValidity())
	}
	s.scale("0")
	s.decided("CALost", "scale statefulset")
	s.endPods()
	before := s.decided("ApplyObjects", "Secret a-ca")
	s.do(before, decide.ApplyObjects{}, true)
	after := s.observe()
	s.settled(after)
	record := after.state.Record
	switch own := pki.Fingerprint(secretOf(after, "a-ca")["ca.crt"]); {
	case own == pki.Fingerprint(expired.Pair().Certificate) || own != record.CA:
		t.Errorf("the CA in the Secret is %s, the recorded CA is %s", own, record.CA)
	case record.ClusterID != 0xc1 || record.Token != before.state.Record.Token || after.state.Objects.RunsReplicas != 3:
		t.Errorf("after: %+v, %d pods", record, after.state.Objects.RunsReplicas)
	case after.state.CertificatesValidity() != decide.Valid:
		t.Errorf("the certificates are %s: %s", after.state.CertificatesValidity(), after.state.DescribeCertificates())
	}
}

// TestCAMismatchDoesNotBlockStop checks that the pods of a cluster with lifecycle Stopped are stopped even if they
// trust a different CA. Only the StatefulSet and the declaration are written.
func TestCAMismatchDoesNotBlockStop(t *testing.T) {
	for _, stripped := range []bool{false, true} {
		s := running(t)
		s.putCA(caMade(t, time.Now()))
		if stripped { // as after a restore, which loses the managed fields
			s.patchSet(`{"metadata":{"managedFields":[{}]}}`)
		}
		before := versions(s.decided("CAChanged", "(lifecycle: Stopped in git"))
		s.spec = "version: 3.6.16, lifecycle: Stopped"
		c := s.decided("CAChanged", "stopping the pods of a-0, a-1 and a-2")
		s.do(c, decide.StopPods{}, true)
		c = s.observe()
		if c.state.Objects.RunsReplicas != 0 {
			t.Errorf("the StatefulSet requires %d pods", c.state.Objects.RunsReplicas)
		}
		after := versions(c)
		for id := range before {
			if changed, scaled := before[id] != after[id], id == "StatefulSet/a"; changed != scaled {
				t.Errorf("%s is written: %t", id, changed)
			}
		}
		s.endPods()
		s.spec = "version: 3.6.16"
		s.do(s.decided("ApplyObjects", "Secret a-"), decide.ApplyObjects{}, true)
		if c = s.observe(); c.state.Objects.RunsReplicas != 3 {
			t.Errorf("the StatefulSet requires %d pods again", c.state.Objects.RunsReplicas)
		}
	}
}

// TestInvalidSpecDoesNotBlockRenewal checks that worn certificates are reissued even if the spec is invalid, and that
// nothing else is written.
func TestInvalidSpecDoesNotBlockRenewal(t *testing.T) {
	s := running(t)
	c := s.observe()
	s.wear(c, 300*24*time.Hour)
	s.spec = "version: 3.6.16, storage: {size: 1Mi}, suspend: true"
	s.decided("InvalidSpec", "")
	s.spec = "version: 3.6.16, storage: {size: 1Mi}"
	c = s.decided("RenewCertificates", "tls.crt in Secret a-server-tls expires at")
	before := versions(c)
	s.do(c, decide.RenewCertificates{}, true)
	c = s.decided("InvalidSpec", "")
	after := versions(c)
	for id := range before {
		if changed, worn := before[id] != after[id], id == "Secret/a-server-tls"; changed != worn {
			t.Errorf("%s is written: %t", id, changed)
		}
	}
	if c.state.CertificatesValidity() != decide.Valid || !bytes.Equal(secretOf(c, "a-server-tls")["ca.crt"], secretOf(c, "a-ca")["ca.crt"]) {
		t.Errorf("after: %s", c.state.DescribeCertificates())
	}
	s.spec = "version: 3.6.16"
	s.settled(s.observe())
}

// wear replaces the server certificate in its Secret with a certificate of the given age.
func (s *stage) wear(c *cluster, ago time.Duration) {
	s.Helper()
	ca, err := pki.ReadCA(c.certificates.CA, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	list, err := pki.ParseCertificates(c.certificates.Server.Certificate)
	if err != nil {
		s.Fatal(err)
	}
	as := list[0]
	leaf := pki.Leaf{CommonName: as.Subject.CommonName, DNSNames: as.DNSNames, IPAddresses: as.IPAddresses, Usages: as.ExtKeyUsage}
	old, err := ca.Issue(leaf, time.Now().Add(-ago))
	if err != nil {
		s.Fatal(err)
	}
	s.put("a-server-tls", map[string][]byte{"tls.crt": old.Certificate, "tls.key": old.Key, "ca.crt": c.certificates.Trusted()})
}
