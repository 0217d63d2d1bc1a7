package scenarios

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var leafSecrets = []string{"a-peer-tls", "a-server-tls", "a-quorate-tls", "a-client-tls"}

// testCAChanged replaces the CA in the Secret with another valid CA. Members and applications continue to use the
// original CA. When it is restored, everything must be as before.
func testCAChanged(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	own, leaves := w.secretData("a-ca"), w.leafData()
	w.putSecret("a-ca", anotherCA(t))
	r := w.run("--until-converged", "--timeout", "20s").requireCode(t, exitBlocked).requireRule(t, "a", "CAChanged")
	if !r.says("scale statefulset a") {
		t.Errorf("the instructions are missing:\n%s", r)
	}
	w.requireCondition("a", "Stalled", "True", "CAChanged")
	w.deletePod("a-2")
	w.waitForPods("a", 3)
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	w.member("a", 2).put("ca", "the old one")
	if got := w.member("a", 0).get("ca"); got != "the old one" {
		t.Errorf("a-0 reads %q", got)
	}
	if now := w.leafData(); !reflect.DeepEqual(leaves, now) {
		t.Error("certificates were issued from an untrusted CA")
	}
	w.putSecret("a-ca", own)
	w.converge().requireRule(t, "a", "Converged")
	if now := w.leafData(); !reflect.DeepEqual(leaves, now) {
		t.Error("certificates were reissued without need")
	}
	w.requireCondition("a", "CertificatesValid", "True", "Valid")
}

// testWornCertificates checks that a certificate that is about to expire is reissued even if the declaration is
// invalid. While the cluster is suspended, the certificate is only reported.
func testWornCertificates(t *testing.T, w *world) {
	w.wear("a-server-tls")
	worn, objects := w.leafData(), w.snapshot()
	w.declare(modern, "replicas: many")
	w.run().requireCode(t, exitInvalid).requireRule(t, "a", "RenewCertificates")
	w.run().requireCode(t, exitInvalid).requireRule(t, "a", "InvalidSpec")
	w.requireCondition("a", "CertificatesValid", "True", "Valid")
	now := w.leafData()
	for name := range worn {
		if renewed := !maps.EqualFunc(worn[name], now[name], equal); renewed != (name == "a-server-tls") {
			t.Errorf("%s was reissued: %t", name, renewed)
		}
	}
	if wrong := difference(objects, w.snapshot()); wrong != "" {
		t.Errorf("something else was written: %s", wrong)
	}

	w.declare(modern, three, "suspend: true")
	w.converge().requireRule(t, "a", "Suspended")
	w.wear("a-server-tls")
	worn = w.leafData()
	r := w.run().requireCode(t, exitBlocked).requireRule(t, "a", "Suspended")
	if warnings := r.cluster("a").Warnings; len(warnings) != 1 {
		t.Errorf("warnings: %q", warnings)
	}
	w.requireCondition("a", "CertificatesValid", "False", "AboutToExpire")
	if now := w.leafData(); !reflect.DeepEqual(worn, now) {
		t.Error("a suspended cluster got a certificate")
	}

	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	w.requireCondition("a", "CertificatesValid", "True", "Valid")
	w.requireQuiet("a")
}

// testCAExpired follows the instructions in the message about an expired CA: all pods are stopped, and then start again
// with their data and new certificates.
func testCAExpired(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 0).put("expired", "not the data")
	old := w.secretData("a-ca")
	expired := maps.Clone(old)
	expired["ca.crt"] = reissue(t, old, old["ca.crt"], -2*time.Hour, -time.Hour)
	w.putSecret("a-ca", expired)
	r := w.run("--until-converged", "--timeout", "20s").requireCode(t, exitBlocked).requireRule(t, "a", "CALost")
	if !r.says("scale statefulset a --replicas=0") {
		t.Errorf("the instructions are missing:\n%s", r)
	}
	w.requireCondition("a", "CertificatesValid", "False", "Expired")
	w.kubectl("--namespace", w.namespace, "scale", "statefulset", "a", "--replicas=0")
	w.converge().requireRule(t, "a", "Converged")
	w.waitForPods("a", 3)
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if got := w.member("a", 1).get("expired"); got != "not the data" {
		t.Errorf("the data came back as %q", got)
	}
	if now := w.secretData("a-ca"); equal(now["ca.crt"], old["ca.crt"]) || equal(now["ca.crt"], expired["ca.crt"]) {
		t.Error("the CA is the old one")
	}
	requireTLS(t, w, "a")
	w.requireQuiet("a")
}

func equal(a, b []byte) bool { return string(a) == string(b) }

func (w *world) secretData(name string) map[string][]byte {
	w.t.Helper()
	secret, err := w.kube.CoreV1().Secrets(w.namespace).Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret.Data
}

func (w *world) leafData() map[string]map[string][]byte {
	w.t.Helper()
	data := map[string]map[string][]byte{}
	for _, name := range leafSecrets {
		data[name] = w.secretData(name)
	}
	return data
}

// putSecret replaces a Secret's data, as a user would.
func (w *world) putSecret(name string, data map[string][]byte) {
	w.t.Helper()
	client := w.kube.CoreV1().Secrets(w.namespace)
	secret, err := client.Get(w.ctx(), name, metav1.GetOptions{})
	if err == nil {
		secret.Data = data
		_, err = client.Update(w.ctx(), secret, metav1.UpdateOptions{FieldManager: "by-hand"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// wear replaces a certificate in a Secret with one that is about to expire.
func (w *world) wear(name string) {
	w.t.Helper()
	data := maps.Clone(w.secretData(name))
	data["tls.crt"] = reissue(w.t, w.secretData("a-ca"), data["tls.crt"], -95*time.Hour, 5*time.Hour)
	w.putSecret(name, data)
}

// anotherCA returns a different, valid CA.
func anotherCA(t testing.TB) map[string][]byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "another CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10000 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"ca.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}
}

// reissue signs a certificate, which may be the CA's own, again for the same key with a different validity period.
func reissue(t testing.TB, ca map[string][]byte, certificate []byte, from, until time.Duration) []byte {
	t.Helper()
	return signAgain(t, ca, certificate, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(until)
	})
}

// signAgain applies a change to a certificate and signs it again for the same key.
func signAgain(t testing.TB, ca map[string][]byte, certificate []byte, change func(*x509.Certificate)) []byte {
	t.Helper()
	issuer, template := parsed(t, ca["ca.crt"]), parsed(t, certificate)
	block, _ := pem.Decode(ca["ca.key"])
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = nil
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, template.PublicKey, key)
	if err != nil {
		t.Fatal(fmt.Errorf("sign %s again: %w", template.Subject, err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func parsed(t testing.TB, certificate []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(certificate)
	read, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return read
}
