package objects

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// These are the data keys of the Secrets. The CA's Secret has different data keys, so that a pod cannot mount it in
// place of a leaf by mistake.
const (
	keyCA                = "ca.crt"
	keyCAPrivate         = "ca.key"
	keyCertificate       = "tls.crt"
	keyPrivate           = "tls.key"
	keyClientCertificate = "client.crt"
	keyClientPrivate     = "client.key"
)

// rootName is the common name in Quorate's own client certificate. Once authentication is enabled, root is etcd's
// superuser, and only root may change the membership.
const rootName = "root"

// Certificates holds all keys and certificates of one cluster. It is zero if TLS is disabled.
type Certificates struct {
	CA pki.Pair
	// Peer is the certificate that a member presents as a server to other members. PeerClient is the certificate that
	// it presents as a client to other members.
	Peer, PeerClient pki.Pair
	// Server is the certificate that a member presents to clients. Client is the applications' certificate, and Own is
	// Quorate's. Own is stored instead of being issued by each pass, so that read-only commands do not need the CA key,
	// and etcd can be reached even if the CA is lost.
	Server, Client, Own pki.Pair
	// ClientIsRoot is whether applications keep the name of etcd's superuser, because their rights may depend on it.
	ClientIsRoot bool

	// These are the CAs to trust, according to the Secret of each leaf.
	trustedPeer, trustedServer, trustedClient, trustedOwn []byte
}

// NewCertificates creates a CA and all leaves.
func NewCertificates(c *v1alpha1.EtcdCluster, now time.Time) (Certificates, error) {
	ca, err := pki.NewCA(c.Name, c.Namespace, now)
	if err != nil {
		return Certificates{}, err
	}
	made, _, err := Certificates{CA: ca.Pair()}.Renew(c, now)
	return made, err
}

// TakeOver returns a cluster's certificates, issued from the CA of the cluster that it adopts. data is the data of a
// Secret of type kubernetes.io/tls. The CA must be valid until the given time. The error explains why the CA cannot be
// taken over.
func TakeOver(c *v1alpha1.EtcdCluster, data map[string][]byte, now, until time.Time) (Certificates, error) {
	ca, err := pki.ReadCA(pki.Pair{Certificate: data[keyCertificate], Key: data[keyPrivate]}, now)
	if err != nil {
		return Certificates{}, err
	}
	if err := ca.CheckTakeOver(until); err != nil {
		return Certificates{}, err
	}
	issued, _, err := Certificates{CA: ca.Pair()}.Renew(c, now)
	return issued, err
}

// ReadCertificates reads the certificates from the data of the cluster's Secrets, by name. Missing certificates are
// empty.
func ReadCertificates(c *v1alpha1.EtcdCluster, secrets map[string]map[string][]byte) Certificates {
	names := NamesOf(c.Name)
	pair := func(data map[string][]byte, certificate, key string) pki.Pair {
		return pki.Pair{Certificate: data[certificate], Key: data[key]}
	}
	peer, server := secrets[names.PeerSecret], secrets[names.ServerSecret]
	client, own := secrets[names.ClientSecret], secrets[names.OwnSecret]
	return Certificates{
		CA:            pair(secrets[names.CASecret], keyCA, keyCAPrivate),
		Peer:          pair(peer, keyCertificate, keyPrivate),
		PeerClient:    pair(peer, keyClientCertificate, keyClientPrivate),
		Server:        pair(server, keyCertificate, keyPrivate),
		Client:        pair(client, keyCertificate, keyPrivate),
		Own:           pair(own, keyCertificate, keyPrivate),
		trustedPeer:   peer[keyCA],
		trustedServer: server[keyCA],
		trustedClient: client[keyCA],
		trustedOwn:    own[keyCA],
	}
}

// NamesRoot reports whether the applications' certificate names etcd's superuser, as it did before Quorate had its own
// certificate.
func (k Certificates) NamesRoot() bool {
	list, err := pki.ParseCertificates(k.Client.Certificate)
	return err == nil && list[0].Subject.CommonName == rootName
}

// Mounted returns the fingerprints of the CAs in the Secrets of pods and applications, without duplicates.
func (k Certificates) Mounted() []string {
	var list []string
	all := [][]byte{k.trustedPeer, k.trustedServer, k.trustedClient, k.trustedOwn}
	for _, trusted := range slices.CompactFunc(all, bytes.Equal) { // usually all equal
		list = append(list, pki.Fingerprints(trusted)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Validities returns the validity of each certificate, skipping unreadable certificates.
func (k Certificates) Validities(c *v1alpha1.EtcdCluster) []decide.Certificate {
	all := append(k.leaves(c), storedLeaf{secret: NamesOf(c.Name).CASecret, certificateKey: keyCA, pair: &k.CA})
	var list []decide.Certificate
	for _, l := range all {
		read, err := pki.ParseCertificates(l.pair.Certificate)
		if err != nil {
			continue
		}
		list = append(list, decide.Certificate{
			Secret: l.secret, Key: l.certificateKey, CA: l.pair == &k.CA,
			NotBefore: read[0].NotBefore.UTC(), NotAfter: read[0].NotAfter.UTC(),
			Weak: pki.Weakness(read[0]),
		})
	}
	return list
}

// Trusted returns, in PEM, the CAs that clients and members trust and receive as ca.crt.
func (k Certificates) Trusted() []byte { return k.CA.Certificate }

// CheckCA returns an error if the CA cannot be used. A caller must not create a new CA while members trust the old one.
func (k Certificates) CheckCA(now time.Time) error {
	_, err := pki.ReadCA(k.CA, now)
	return err
}

// Renew reissues every leaf that cannot be used as it is, and returns a reason for each. It never creates a CA.
func (k Certificates) Renew(
	c *v1alpha1.EtcdCluster, now time.Time,
) (renewed Certificates, problems []string, err error) {
	ca, err := pki.ReadCA(k.CA, now)
	if err != nil {
		return k, nil, err
	}
	renewed = k
	for _, l := range renewed.leaves(c) {
		problem := k.check(ca, l, now)
		if problem == nil {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s in Secret %s: %v", l.certificateKey, l.secret, problem))
		if *l.pair, err = ca.Issue(l.leaf, now); err != nil {
			return k, nil, err
		}
	}
	renewed.trustedPeer, renewed.trustedServer, renewed.trustedClient, renewed.trustedOwn = k.Trusted(), k.Trusted(),
		k.Trusted(), k.Trusted()
	return renewed, problems, nil
}

func (k Certificates) check(ca *pki.CA, l storedLeaf, now time.Time) error {
	if !bytes.Equal(l.trusted, k.Trusted()) {
		return fmt.Errorf("%s in the same Secret is not this cluster's CA", keyCA)
	}
	return ca.Check(*l.pair, l.leaf, now)
}

// storedLeaf is a leaf and the location where it is stored.
type storedLeaf struct {
	secret, certificateKey string
	leaf                   pki.Leaf
	pair                   *pki.Pair
	trusted                []byte
}

func (k *Certificates) leaves(c *v1alpha1.EtcdCluster) []storedLeaf {
	names := NamesOf(c.Name)
	return []storedLeaf{
		{names.PeerSecret, keyCertificate, peerLeaf(c), &k.Peer, k.trustedPeer},
		{names.PeerSecret, keyClientCertificate, pki.Leaf{CommonName: peerName(c), Usages: clientOnly}, &k.PeerClient,
			k.trustedPeer},
		{names.ServerSecret, keyCertificate, serverLeaf(c), &k.Server, k.trustedServer},
		{names.OwnSecret, keyCertificate, clientLeaf(rootName), &k.Own, k.trustedOwn},
		{names.ClientSecret, keyCertificate, clientLeaf(k.clientName(c)), &k.Client, k.trustedClient},
	}
}

// clientName returns the name of the etcd user that applications are once authentication is enabled.
func (k *Certificates) clientName(c *v1alpha1.EtcdCluster) string {
	if k.ClientIsRoot {
		return rootName
	}
	return c.Name + "-client"
}

// clientLeaf returns a leaf with an address that clients never have. On the peer port, a member compares the addresses
// in the certificate of a caller with the caller's address (checkCertSAN in client/pkg/transport of every etcd
// version), so it rejects clients. The client port does not check addresses.
func clientLeaf(name string) pki.Leaf {
	return pki.Leaf{CommonName: name, IPAddresses: []net.IP{net.IPv4zero}, Usages: clientOnly}
}

var (
	serverOnly = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientOnly = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	// bothUsages is required because etcd's gateway calls its own member with the member's server certificate (hard
	// case H60).
	bothUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

func peerName(c *v1alpha1.EtcdCluster) string { return c.Name + "-peer" }

// peerLeaf returns a leaf that names all possible members with a wildcard (hard case H58) and contains no addresses
// (hard case H59).
func peerLeaf(c *v1alpha1.EtcdCluster) pki.Leaf {
	return pki.Leaf{CommonName: peerName(c), DNSNames: memberNames(c), Usages: serverOnly}
}

func serverLeaf(c *v1alpha1.EtcdCluster) pki.Leaf {
	names := memberNames(c)
	services := []string{NamesOf(c.Name).ClientService, NamesOf(c.Name).Service}
	for _, service := range services {
		names = append(append(names, service), serviceHosts(service, c.Namespace)...)
	}
	for _, name := range c.Spec.TLS.ServiceNames {
		// Certificates are renewed even if the spec is invalid, but must never name a host outside the namespace. A
		// name without a namespace could be used in any namespace, where others may trust a CA that was taken over.
		if len(validation.IsDNS1035Label(string(name))) == 0 && !slices.Contains(services, string(name)) {
			services = append(services, string(name))
			names = append(names, serviceHosts(string(name), c.Namespace)...)
		}
	}
	return pki.Leaf{
		CommonName:  c.Name + "-server",
		DNSNames:    append(names, "localhost"),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		Usages:      bothUsages,
	}
}

// serviceHosts returns the names of a Service that contain its namespace.
func serviceHosts(service, namespace string) []string {
	host := service + "." + namespace
	return []string{host, host + ".svc", host + ".svc.cluster.local"}
}

func memberNames(c *v1alpha1.EtcdCluster) []string {
	service := "*." + serviceHost(c, NamesOf(c.Name).Service)
	return []string{service, service + ".cluster.local"}
}
