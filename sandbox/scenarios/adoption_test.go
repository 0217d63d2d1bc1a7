package scenarios

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdoptionOfStatefulSet adopts a hand-written StatefulSet without TLS while applications write, as described in
// docs/how-to/adopt-a-cluster.md: the replicas join, leave again, and join once more; then the old members leave, one
// commit at a time. The cluster ID and every acknowledged write are kept, and the old cluster's objects are not
// written.
func TestAdoptionOfStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.startOld()
	before := w.foreignVersions()
	history := w.watchWritesToBoth(old)

	w.adoptAsInspected(old)
	w.requireVoters("a", 6)
	w.adopt(old, ", abandon: true", "Holding")
	w.requireOneCluster("old", 3)
	w.adopt(old, "", "Holding")
	if now := w.foreignVersions(); !slices.Equal(now, before) {
		t.Errorf("objects of the old cluster were written: %v, before: %v", now, before)
	}
	for i := range old.members {
		rule := "Holding"
		if i == len(old.members)-1 {
			rule = "Converged"
		}
		w.adopt(old, release(old.members[:i+1]), rule)
	}
	history.end()
	w.requireSameCluster(old)
	w.requireSize(3)
	w.declare(modern, three, "tls: {mode: Disabled}")
	w.converge()
	w.requireQuiet("a")
}

// TestAdoptionWithTLS adopts a hand-written StatefulSet that uses TLS, authentication and a CA with an RSA key, while
// applications write with their old certificate. The replicas join, leave again, join once more and take over. Once
// spec.adopt is removed, the replicas restart and accept only each other's certificates on the peer port.
func TestAdoptionWithTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createOldCertificates()
	old := w.startOld()
	w.enableAuthOf("old", "old-client-tls")
	history := w.watchWritesToBoth(old)

	w.adoptAsInspected(old)
	w.requireVoters("old", 6)
	w.adopt(old, ", abandon: true", "Holding")
	w.requireOneCluster("old", 3)
	w.adopt(old, "", "Holding")
	w.adopt(old, release(old.members), "Converged")
	w.requireSameCluster(old)
	w.requireVoters("a", 3)
	if w.limitsPeers() {
		t.Error("members restrict the names in peer certificates while guests may still be members")
	}
	pods := w.podUIDs("a")
	w.declare(modern, three)
	w.converge()
	history.end()
	if !w.limitsPeers() {
		t.Error("members accept every certificate from the CA as a peer certificate")
	}
	for name, uid := range w.podUIDs("a") {
		if pods[name] == uid {
			t.Errorf("%s was not restarted", name)
		}
	}
	if !bytes.Equal(w.secretData("a-ca")["ca.crt"], w.secretData("old-ca")["tls.crt"]) {
		t.Error("the CA was replaced")
	}
	w.requireQuiet("a")
}

// limitsPeers reports whether the configuration of cluster a's members restricts the names in peer certificates.
func (w *world) limitsPeers() bool {
	w.t.Helper()
	files, err := w.kube.CoreV1().ConfigMaps(w.namespace).Get(w.ctx(), "a-members", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, text := range files.Data {
		if strings.Contains(text, "allowed-cn") {
			return true
		}
	}
	return false
}

// oldCluster is the cluster to adopt.
type oldCluster struct {
	id string
	// members holds the IDs of its members.
	members []string
	secure  bool
}

// BenchmarkAdoption measures how long applications wait for a write during an adoption. It compares the time in which
// three replicas join with the time in which the same cluster then scales from three to six and back.
func BenchmarkAdoption(b *testing.B) {
	w := newWorld(b)
	old := w.startOld()
	history := w.watchWritesToBoth(old)
	start := time.Now()
	w.adopt(old, "", "Holding")
	joined := time.Since(start)
	w.adopt(old, release(old.members), "Converged")
	figure("adopt_write_gap_ms", float64(history.end().longest.Milliseconds()), "ms")
	start = time.Now()
	for _, size := range []string{"replicas: 6", three} {
		w.declare(modern, size, "tls: {mode: Disabled}")
		w.converge()
	}
	figure("adopt_join_ratio", joined.Seconds()/time.Since(start).Seconds(), "ratio")
}

// startOld starts the cluster to adopt, with TLS if its certificates exist.
func (w *world) startOld() oldCluster {
	w.t.Helper()
	security, err := w.clientTLS("old")
	if err != nil {
		w.t.Fatal(err)
	}
	old := oldCluster{secure: security != nil}
	if old.secure {
		w.apply(secureOldThree)
	} else {
		w.apply(oldThree)
	}
	old.id = w.requireOneCluster("old", 3)
	w.waitForClusterVersion("old-0")
	old.members = w.listedIDs("old")
	return old
}

// adopt declares that cluster a adopts cluster old, with more fields of spec.adopt, and runs passes until the given rule
// reports that nothing is left to do.
func (w *world) adopt(old oldCluster, more, rule string) {
	w.t.Helper()
	mode := "tls: {mode: Disabled}"
	if old.secure {
		mode, more = "tls: {mode: Managed}", ", caSecretName: old-ca"+more
	}
	w.declare(modern, three, mode, fmt.Sprintf("adopt: {clusterID: %q, endpoints: [%s]%s}", old.id,
		strings.Join(w.endpointsOf("old", old.secure), ", "), more))
	w.convergeFrom(outside, w.allowsAdoption()...).requireRule(w.t, "a", rule)
}

// adoptAsInspected pushes the declaration printed by "quorate adopt inspect", and runs passes until the replicas have
// joined.
func (w *world) adoptAsInspected(old oldCluster) {
	w.t.Helper()
	args := []string{"adopt", "inspect", w.namespace + "/a", "--from", "statefulset/old", "--kubeconfig", w.kubeconfig}
	if old.secure {
		if r := offline(w.t, args...).requireCode(w.t, exitBlocked); !r.says("its members use TLS") {
			w.t.Errorf("inspecting the source without --ca-secret did not report TLS:\n%s", r)
		}
		args = append(args, "--ca-secret", "old-ca")
	}
	var inspected result
	eventually(w.t, "the source can be adopted", func() error { // on a busy machine, a member may miss the timeout
		if inspected = offline(w.t, args...); inspected.code != exitDone {
			return fmt.Errorf("%s", inspected)
		}
		return nil
	})
	w.repository.push(map[string]string{"a.yaml": inspected.stdout})
	w.convergeFrom(outside, w.allowsAdoption()...).requireRule(w.t, "a", "Holding")
}

// requireSameCluster fails unless cluster a has the ID of the cluster that it adopted.
func (w *world) requireSameCluster(old oldCluster) {
	w.t.Helper()
	if now := w.status("a").ClusterID; strings.TrimLeft(now, "0") != strings.TrimLeft(old.id, "0") {
		w.t.Errorf("cluster %s became cluster %s", old.id, now)
	}
}

// release returns the field that releases members. Unquoted IDs may be numbers in YAML.
func release(members []string) string {
	return fmt.Sprintf(`, release: ["%s"]`, strings.Join(members, `", "`))
}

// watchWritesToBoth starts applications that know the members of both clusters. With TLS, they use a client
// certificate of the old cluster.
func (w *world) watchWritesToBoth(old oldCluster) *history {
	w.t.Helper()
	return w.watchWritesBy(func() (*clientv3.Client, error) {
		security, err := w.clientTLS("old")
		if err != nil {
			return nil, err
		}
		return w.applicationOf(slices.Concat(w.endpointsOf("old", old.secure), w.endpointsOf("a", old.secure)), security)
	})
}

// oldThree is bareThree under another name.
var oldThree = strings.NewReplacer("name: a}", "name: old}", "etcd: a}", "etcd: old}", "serviceName: a\n", "serviceName: old\n",
	"a-0", "old-0", "a-1", "old-1", "a-2", "old-2", ".a:", ".old:").Replace(bareThree)

// secureOldThree is oldThree with TLS.
var secureOldThree = strings.NewReplacer("http://", "https://",
	"command: [etcd,", "command: [etcd, --client-cert-auth, --trusted-ca-file=/tls/ca.crt, --cert-file=/tls/tls.crt, --key-file=/tls/tls.key, "+
		"--peer-client-cert-auth, --peer-trusted-ca-file=/tls/ca.crt, --peer-cert-file=/tls/tls.crt, --peer-key-file=/tls/tls.key,",
	"mountPath: /data}]", "mountPath: /data}, {name: tls, mountPath: /tls}]\n      volumes: [{name: tls, secret: {secretName: old-tls}}]").Replace(oldThree)

// createOldCertificates creates the Secrets of an old cluster with TLS: a CA with an RSA key, a certificate that the
// members use on all ports, and a client certificate for the user root.
func (w *world) createOldCertificates() {
	w.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: "etcd-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	issue := func(template *x509.Certificate, public crypto.PublicKey) []byte {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour*24*365)
		der, err := x509.CreateCertificate(rand.Reader, template, authority, public, key)
		if err != nil {
			w.t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	ca := issue(authority, key.Public())
	rsaKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	w.createSecret("old-ca", map[string][]byte{"tls.crt": ca, "tls.key": rsaKey})
	host := "*.old." + w.namespace + ".svc"
	for name, template := range map[string]*x509.Certificate{
		"old-tls": {
			Subject: pkix.Name{CommonName: "etcd"}, DNSNames: []string{"*.old", host, host + ".cluster.local"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, // for the forwarded port
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		},
		"old-client-tls": {Subject: pkix.Name{CommonName: "root"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(leaf)
		if err != nil {
			w.t.Fatal(err)
		}
		w.createSecret(name, map[string][]byte{
			"ca.crt": ca, "tls.crt": issue(template, leaf.Public()),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		})
	}
}

// endpointsOf returns the client URLs of a cluster's three members.
func (w *world) endpointsOf(cluster string, secure bool) []string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	var urls []string
	for ordinal := range 3 {
		urls = append(urls, fmt.Sprintf("%s://%s-%d.%[2]s.%[4]s.svc:2379", scheme, cluster, ordinal, w.namespace))
	}
	return urls
}

// allowsAdoption returns the configuration that allows the adoption of clusters in the namespace.
func (w *world) allowsAdoption() []string {
	policy := map[string]any{"adoptions": []string{"old-*.old." + w.namespace + ".svc:2379"}}
	return []string{configFlag(map[string]any{"sourceDefaults": map[string]any{"policy": policy}})}
}

// listedIDs returns the IDs of a cluster's members, as etcdctl prints them.
func (w *world) listedIDs(cluster string) []string {
	w.t.Helper()
	list, err := w.member(cluster, 0).MemberList(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Members {
		ids = append(ids, fmt.Sprintf("%x", m.ID))
	}
	return ids
}

// foreignVersions returns the generations and owners of the old cluster's objects, which change if Quorate or
// another tool writes them.
func (w *world) foreignVersions() []string {
	w.t.Helper()
	set, err := w.kube.AppsV1().StatefulSets(w.namespace).Get(w.ctx(), "old", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	service, err := w.kube.CoreV1().Services(w.namespace).Get(w.ctx(), "old", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	versions := []string{fmt.Sprint(set.UID, set.Generation), fmt.Sprint(service.UID, service.ResourceVersion)}
	for ordinal := range 3 {
		pod := w.pod(fmt.Sprint("old-", ordinal))
		versions = append(versions, fmt.Sprint(pod.UID, pod.Generation, pod.Status.ContainerStatuses[0].RestartCount))
		for _, field := range pod.ManagedFields {
			versions = append(versions, field.Manager)
		}
	}
	return versions
}

// requireVoters fails unless a cluster has the given number of voters, and all respond.
func (w *world) requireVoters(cluster string, n int) {
	w.t.Helper()
	list, err := w.member(cluster, 0).MemberList(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	if voters != n {
		w.t.Errorf("%d voters, want %d: %v", voters, n, list.Members)
	}
}
