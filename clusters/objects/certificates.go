package objects

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// The keys in the data of the Secrets. Those of the CA are its own, so that no pod mounts it by
// mistake for a leaf.
const (
	keyCA                = "ca.crt"
	keyCAPrivate         = "ca.key"
	keyCertificate       = "tls.crt"
	keyPrivate           = "tls.key"
	keyClientCertificate = "client.crt"
	keyClientPrivate     = "client.key"
)

// rootName is the common name in Quorate's own client certificate: etcd's superuser, once
// authentication is on. Changes of members take no less.
const rootName = "root"

// Certificates are all keys and certificates of one cluster. Zero where TLS is disabled.
type Certificates struct {
	CA pki.Pair
	// Peer is what a member shows to members that call it, PeerClient what it shows to those it
	// calls.
	Peer, PeerClient pki.Pair
	// Server is what a member shows to clients, Client what applications show to it, and Own what
	// Quorate does. Own is kept rather than issued by each pass, so that who only looks needs no
	// key of the CA, and etcd can be asked when the CA is lost.
	Server, Client, Own pki.Pair
	// ClientIsRoot: applications keep the name of etcd's superuser, by which they may have their
	// rights.
	ClientIsRoot bool

	// trusted are the CAs that the Secret of each leaf says to trust.
	trustedPeer, trustedServer, trustedClient, trustedOwn []byte
}

// NewCertificates makes a CA and all leaves.
func NewCertificates(c *v1alpha1.EtcdCluster, now time.Time) (Certificates, error) {
	ca, err := pki.NewCA(c.Name, c.Namespace, now)
	if err != nil {
		return Certificates{}, err
	}
	made, _, err := Certificates{CA: ca.Pair()}.Renew(c, now)
	return made, err
}

// ReadCertificates collects what the Secrets of the cluster hold, given their data by name. What
// they do not hold is missing.
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

// NamesRoot reports whether the certificate of applications is for etcd's superuser, as it was
// before Quorate had one of its own.
func (k Certificates) NamesRoot() bool {
	list, err := pki.ParseCertificates(k.Client.Certificate)
	return err == nil && list[0].Subject.CommonName == rootName
}

// Mounted are the fingerprints of the CAs that pods and applications are given to trust, each once.
func (k Certificates) Mounted() []string {
	var list []string
	all := [][]byte{k.trustedPeer, k.trustedServer, k.trustedClient, k.trustedOwn}
	for _, trusted := range slices.CompactFunc(all, bytes.Equal) { // mostly one
		list = append(list, pki.Fingerprints(trusted)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Validities are the certificates and how long they are good for; those that cannot be read are
// left out.
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

// Trusted returns the CAs to trust, PEM: those that clients and members are given as ca.crt.
func (k Certificates) Trusted() []byte { return k.CA.Certificate }

// CheckCA returns nil if the CA can be used, and why not otherwise. A new one is not to be made
// while members trust the old one.
func (k Certificates) CheckCA(now time.Time) error {
	_, err := pki.ReadCA(k.CA, now)
	return err
}

// Renew issues every leaf again that cannot be used as it is, and returns why, an entry for each. It never makes a CA.
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
		return fmt.Errorf("%s beside it is not the CA of this cluster", keyCA)
	}
	return ca.Check(*l.pair, l.leaf, now)
}

// storedLeaf is a leaf and where it is kept.
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

// clientName is the user that applications are to etcd, once authentication is on.
func (k *Certificates) clientName(c *v1alpha1.EtcdCluster) string {
	if k.ClientIsRoot {
		return rootName
	}
	return c.Name + "-client"
}

// clientLeaf has an address that nobody calls from. A member compares the addresses in the
// certificate of who calls its peer port with where the call comes from (checkCertSAN in
// client/pkg/transport of every etcd), and lets a client in no more than a stranger; on the client
// port nobody looks.
func clientLeaf(name string) pki.Leaf {
	return pki.Leaf{CommonName: name, IPAddresses: []net.IP{net.IPv4zero}, Usages: clientOnly}
}

var (
	serverOnly = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientOnly = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	// bothUsages: etcd's gateway calls the member that it is part of, with the certificate that
	// this one serves (hard case H60).
	bothUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

func peerName(c *v1alpha1.EtcdCluster) string { return c.Name + "-peer" }

// peerLeaf names all members that there can ever be, by wildcard (hard case H58), and no address
// (hard case H59).
func peerLeaf(c *v1alpha1.EtcdCluster) pki.Leaf {
	return pki.Leaf{CommonName: peerName(c), DNSNames: memberNames(c), Usages: serverOnly}
}

func serverLeaf(c *v1alpha1.EtcdCluster) pki.Leaf {
	names := memberNames(c)
	for _, service := range []string{NamesOf(c.Name).ClientService, NamesOf(c.Name).Service} {
		host := service + "." + c.Namespace
		names = append(names, service, host, host+".svc", host+".svc.cluster.local")
	}
	return pki.Leaf{
		CommonName:  c.Name + "-server",
		DNSNames:    append(names, "localhost"),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		Usages:      bothUsages,
	}
}

func memberNames(c *v1alpha1.EtcdCluster) []string {
	service := "*." + serviceHost(c, NamesOf(c.Name).Service)
	return []string{service, service + ".cluster.local"}
}
