package scenarios

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requireTLS checks over the network that neither port of a member accepts clients without a certificate from the
// cluster's own CA, and that the client port accepts the certificate in the client Secret.
func requireTLS(t *testing.T, w *world, cluster string) {
	t.Helper()
	pod := cluster + "-0"
	good, err := w.clientTLS(cluster)
	if err != nil || good == nil {
		t.Fatalf("no client secret for a cluster with TLS: %v", err)
	}
	good.ServerName = fmt.Sprintf("%s.%s.%s.svc", pod, cluster, w.namespace)
	if err := w.speak(pod, clientPort, good); err != nil {
		t.Errorf("the client port refuses the certificate of the client secret: %v", err)
	}
	stranger := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{selfSigned(t)}}
	for name, security := range map[string]*tls.Config{
		"plain text": nil, "no certificate": {InsecureSkipVerify: true}, "a certificate of another CA": stranger,
	} {
		for _, port := range []int32{clientPort, peerPort} {
			if err := w.speak(pod, port, security); err == nil {
				t.Errorf("port %d of %s answers a client with %s", port, pod, name)
			}
		}
	}
	distrustful := good.Clone()
	distrustful.RootCAs = x509.NewCertPool()
	if err := w.speak(pod, clientPort, distrustful); err == nil {
		t.Error("a client without trusted CAs accepts the server's certificate: the test proves nothing")
	}
	requireSeparateUse(t, w, cluster, good)
}

// requireSeparateUse checks that the peer port rejects an application's certificate and accepts the members'
// certificate.
func requireSeparateUse(t *testing.T, w *world, cluster string, application *tls.Config) {
	t.Helper()
	application = application.Clone()
	application.InsecureSkipVerify = true
	if err := w.speak(cluster+"-0", peerPort, application); err == nil {
		t.Errorf("the peer port of %s answers an application with the client secret", cluster)
	}
	secret, err := w.kube.CoreV1().Secrets(w.namespace).Get(w.ctx(), cluster+"-peer-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data["client.crt"], secret.Data["client.key"])
	if err != nil {
		t.Fatal(err)
	}
	application.Certificates = []tls.Certificate{pair}
	if err := w.speak(cluster+"-0", peerPort, application); err != nil {
		t.Errorf("the peer port of %s does not answer its own members: %v", cluster, err)
	}
}

// speak sends a request to a port of a pod, for a path that every etcd serves. It returns nil if the request succeeds.
// It checks the response instead of the handshake, because TLS 1.3 servers reject a certificate only after the
// handshake.
func (w *world) speak(pod string, port int32, security *tls.Config) error {
	address, stop, err := w.forward(pod, port)
	if err != nil {
		w.t.Fatal(err)
	}
	defer stop()
	connection, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	defer connection.Close()
	if security != nil {
		connection = tls.Client(connection, security)
	}
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprint(connection, "GET /version HTTP/1.1\r\nHost: "+pod+"\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", response.Status)
	}
	return nil
}

// selfSigned creates a certificate that is not signed by a cluster's CA.
func selfSigned(t testing.TB, addresses ...net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stranger"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: append(addresses, net.IPv4(127, 0, 0, 1)),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
