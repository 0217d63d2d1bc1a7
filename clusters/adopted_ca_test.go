package clusters

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestCertificatesAreIssuedFromSourceCA checks that certificates are issued only from the CA of the cluster to adopt
// until the new cluster has its own copy of that CA, and that nothing is done if that CA is unavailable.
func TestCertificatesAreIssuedFromSourceCA(t *testing.T) {
	source, another := newCA(t), newCA(t)
	recorded := decide.Record{Token: "t", ClusterID: fakeClusterID, Adopted: fakeClusterID, Guests: []decide.ID{firstGuest}, CA: pki.Fingerprint(source.Certificate)}
	unknown := recorded
	unknown.CA = ""
	for what, test := range map[string]struct {
		secret *pki.Pair
		status int
		record decide.Record
		change func(*cluster)
		says   string
		fails  bool
	}{
		"CA Secret exists":                     {secret: &source},
		"CA Secret is missing":                 {status: http.StatusNotFound, says: "Secret old-ca does not exist"},
		"reading the CA Secret is forbidden":   {status: http.StatusForbidden, says: "Secret old-ca cannot be read by this run"},
		"server error":                         {status: http.StatusInternalServerError, fails: true},
		"key of a different CA":                {secret: &pki.Pair{Certificate: source.Certificate, Key: another.Key}, says: "the key does not match the certificate"},
		"cluster is not allowed":               {change: func(c *cluster) { c.target.Problems = []string{"not allowed"} }, says: "only if git declares"},
		"cluster is orphaned":                  {change: func(c *cluster) { c.target.Orphaned = "git" }, says: "only if git declares"},
		"adoption was interrupted":             {secret: &source, record: recorded},
		"copy lost while pods run":             {secret: &source, record: recorded, change: runs},
		"record lost while pods run":           {secret: &source, record: unknown, change: runs, says: "the recorded CA is unknown"},
		"both lost while pods run":             {status: http.StatusNotFound, record: recorded, change: runs, says: "Do not stop pods"},
		"spec.adopt was removed":               {record: recorded, change: func(c *cluster) { c.target.Cluster.Spec.Adopt = nil }, says: "declare spec.adopt again"},
		"different cluster ID is declared":     {secret: &source, record: recorded, change: func(c *cluster) { c.state.Declared.Adoption.ClusterID = 0xc2 }},
		"interrupted, then CA Secret missing":  {status: http.StatusNotFound, record: recorded, says: "Secret old-ca does not exist"},
		"interrupted, then CA Secret replaced": {secret: &another, record: recorded, says: "the recorded CA is"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newAdoption(t)
			l.record = test.record
			l.old = New(secretClient(t, test.secret, test.status), Options{Timeout: time.Second})
			t.Cleanup(l.old.etcd.Close)
			c := l.seen(l.old)
			c.state.Now = time.Now()
			c.target.Cluster.Spec.TLS.Mode = v1alpha1.TLSManaged
			c.target.Cluster.Spec.Adopt = &v1alpha1.AdoptionSpec{CASecretName: "old-ca"}
			if test.change != nil {
				test.change(c)
			}
			if err := c.takeOverCA(t.Context()); err != nil || test.fails {
				if (err != nil) != test.fails {
					t.Errorf("got %v", err)
				}
				return
			}
			if err := c.readCertificates(t.Context()); err != nil {
				t.Fatal(err)
			}
			if test.says == "" {
				if got := c.state.CA.Secret; got != pki.Fingerprint(source.Certificate) || c.clientTLS() == nil {
					t.Errorf("certificates are issued from CA %s", got)
				}
				return
			}
			d := decide.Decide(c.state)
			if d.Verdict != decide.Block || !strings.Contains(d.Message, test.says) || c.state.CA.Secret != "" || !c.adopted.CA.IsZero() {
				t.Errorf("%s (certificates from CA %q)", d, c.state.CA.Secret)
			}
			if standing, err := c.standing(nil); len(standing) > 0 || err != nil {
				t.Errorf("objects are required although the CA is missing: %v, %v", standing, err)
			}
		})
	}
}

func runs(c *cluster) {
	c.own.Pods = []*corev1.Pod{{}}
	c.state.Objects.RunsReplicas = 3
}

// TestSourceCAIsNotReadAgain checks that the source's CA is not read again once the cluster has its own copy or is
// running.
func TestSourceCAIsNotReadAgain(t *testing.T) {
	l, copied := newHolding(t), newCA(t)
	l.record.CA = pki.Fingerprint(copied.Certificate)
	c := l.seen(l.old)
	c.state.Now = time.Now()
	c.target.Cluster.Spec.TLS.Mode = v1alpha1.TLSManaged
	c.own.Objects = map[string]metav1.Object{"Secret/a-ca": &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a-ca"}, Data: map[string][]byte{"ca.crt": copied.Certificate, "ca.key": copied.Key},
	}}
	c.target.Cluster.Spec.Adopt = &v1alpha1.AdoptionSpec{CASecretName: "old-ca"}
	if c.lacksSourceCA() {
		t.Error("a running cluster would read the source's CA again")
	}
}

func newCA(t *testing.T) pki.Pair {
	t.Helper()
	ca, err := pki.NewCA("old", "default", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca.Pair()
}

// secretClient returns a client of an API server that responds with a Secret that contains pair or, if pair is nil,
// with an error of the given status.
func secretClient(t *testing.T, pair *pki.Pair, status int) *kube.Client {
	t.Helper()
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if pair == nil {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status),
				Reason: map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden}[status],
			})
			return
		}
		if name := path.Base(r.URL.Path); name != "old-ca" {
			t.Errorf("unexpected read of %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			Type:     corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key},
		})
	}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
