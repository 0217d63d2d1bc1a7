package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/pki"
)

// secrets returns a Secret with the CA, which pods do not mount, and a Secret for each leaf, which also contains the
// trusted CAs.
func secrets(in Input) ([]Object, error) {
	k, names := in.Certificates, NamesOf(in.Cluster.Name)
	for what, pair := range map[string]pki.Pair{
		"ca": k.CA, "peer": k.Peer, "peer client": k.PeerClient, "server": k.Server, "client": k.Client,
		"own client": k.Own,
	} {
		if len(pair.Certificate) == 0 || len(pair.Key) == 0 {
			return nil, fmt.Errorf("the %s certificate or its key is missing", what)
		}
	}
	leaf := func(pair pki.Pair) map[string][]byte {
		return map[string][]byte{keyCertificate: pair.Certificate, keyPrivate: pair.Key, keyCA: k.Trusted()}
	}
	peer := leaf(k.Peer)
	peer[keyClientCertificate], peer[keyClientPrivate] = k.PeerClient.Certificate, k.PeerClient.Key
	ca := map[string][]byte{keyCA: k.CA.Certificate, keyCAPrivate: k.CA.Key}
	return []Object{
		secret(in, names.CASecret, corev1.SecretTypeOpaque, ca),
		secret(in, names.PeerSecret, corev1.SecretTypeTLS, peer),
		secret(in, names.ServerSecret, corev1.SecretTypeTLS, leaf(k.Server)),
		secret(in, names.OwnSecret, corev1.SecretTypeTLS, leaf(k.Own)),
		secret(in, names.ClientSecret, corev1.SecretTypeTLS, leaf(k.Client)),
	}, nil
}

// Leaves returns the Secrets of all certificates except the CA's. The Secrets do not depend on the spec.
func Leaves(in Input) ([]Object, error) {
	list, err := secrets(in)
	if err != nil {
		return nil, fmt.Errorf("build the certificates of %s/%s: %w", in.Cluster.Namespace, in.Cluster.Name, err)
	}
	return list[1:], nil
}

func secret(in Input, name string, secretType corev1.SecretType, data map[string][]byte) Object {
	return Object{Identity{"Secret", name}, applycorev1.Secret(name, in.Cluster.Namespace).
		WithLabels(Labels(in.Cluster.Name)).
		WithOwnerReferences(owner(in.Cluster)).
		WithType(secretType).
		WithData(data)}
}
