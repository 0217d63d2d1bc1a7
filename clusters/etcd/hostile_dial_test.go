package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"quorate.dev/quorate/clusters/etcd"
)

// TestPanicWhileDialing checks that a panic while dialing is recovered. gRPC dials in its own goroutines, where no
// other code can recover.
func TestPanicWhileDialing(t *testing.T) {
	cluster := newStrangers(t, 1).cluster()
	cluster.Dial = func(context.Context, string) (net.Conn, error) { panic("no way") }
	answer := newClients(t).Observe(t.Context(), cluster)
	if m := answer.Membership; m.Known || !strings.HasPrefix(m.Why, `a-0: panic: "no way"`) {
		t.Errorf("got %s", print(answer))
	}
}

// TestCertificateNamesAreEscaped checks that the names in a certificate are escaped, because they are untrusted text
// too.
func TestCertificateNamesAreEscaped(t *testing.T) {
	hosts := make([]string, 90)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("\x1b[2J%s.%d", strings.Repeat("w", 500), i)
	}
	ca := newCA(t, hosts...)
	pair, err := tls.LoadX509KeyPair(ca.file("server.pem"), ca.file("server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	for _, client := range []*etcd.TLS{ca.client(), newCA(t).client()} {
		answer := newClients(t).Observe(t.Context(), etcd.Cluster{
			Namespace: namespace, Name: name, TLS: client, Pods: []etcd.Pod{{Name: pod(0)}},
			Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
			},
		})
		t.Logf("%.300q", answer.Membership.Why)
		if answer.Membership.Known || !strings.Contains(answer.Membership.Why, "certificate") {
			t.Errorf("got %s", print(answer))
		}
		checkReadable(t, answer)
	}
}

// TestLongSecretsAreRejected checks that very long data in a Secret is rejected without delaying the pass.
func TestLongSecretsAreRejected(t *testing.T) {
	long := []byte(strings.Repeat("A", 1<<20))
	good := newCA(t).client()
	for what, bad := range map[string]*etcd.TLS{
		"ca.crt":  {CA: long, Cert: good.Cert, Key: good.Key},
		"tls.crt": {CA: good.CA, Cert: long, Key: good.Key},
		"tls.key": {CA: good.CA, Cert: good.Cert, Key: long},
	} {
		cluster := newStrangers(t, 1).cluster()
		cluster.TLS = bad
		answer := newClients(t).Observe(t.Context(), cluster)
		if m := answer.Membership; m.Known || !strings.HasPrefix(m.Why, "a-0: the client's "+what+": it is longer than 64 KiB") {
			t.Errorf("%s: %q", what, m.Why)
		}
	}
}

// TestOversizedRSAKeysAreRejected checks that very long RSA keys are rejected. Signing or verifying with them can take
// seconds, and reading them can take minutes if they omit values that can be computed. None of this can be interrupted.
func TestOversizedRSAKeysAreRejected(t *testing.T) {
	good := newCA(t).client()
	slow := slowPair(t, 8320)
	for want, bad := range map[string]*etcd.TLS{
		"client certificate: its RSA key has 8320 bits; the maximum is 8192": {CA: good.CA, Cert: slow.Cert, Key: slow.Key},
		"the CA: its RSA key has 8320 bits; the maximum is 8192":             {CA: append(slow.Cert, good.CA...), Cert: good.Cert, Key: good.Key},
		"the client's tls.key: it is longer than 8 KiB":                      {CA: good.CA, Cert: good.Cert, Key: []byte(strings.Repeat("A", 8<<10+1))},
	} {
		cluster := newStrangers(t, 1).cluster()
		cluster.TLS = bad
		answer := newClients(t).Observe(t.Context(), cluster)
		if m := answer.Membership; m.Known || !strings.Contains(m.Why, want) {
			t.Errorf("%s: %q", want, m.Why)
		}
	}
}

// slowPair returns an RSA key with the given number of bits. Its factors are not primes, because finding primes would
// take long and nothing checks them.
func slowPair(t *testing.T, bits int) *etcd.TLS {
	t.Helper()
	one := big.NewInt(1)
	factor := func() *big.Int {
		n := make([]byte, bits/16)
		_, _ = rand.Read(n)
		n[0], n[len(n)-1] = n[0]|0xc0, n[len(n)-1]|1
		return new(big.Int).SetBytes(n)
	}
	var key struct {
		Version             int
		N                   *big.Int
		E                   int
		D, P, Q, DP, DQ, QI *big.Int
	}
	for key.E = 65537; key.D == nil || key.QI == nil; {
		key.P, key.Q = factor(), factor()
		p, q := new(big.Int).Sub(key.P, one), new(big.Int).Sub(key.Q, one)
		key.N, key.QI = new(big.Int).Mul(key.P, key.Q), new(big.Int).ModInverse(key.Q, key.P)
		if key.D = new(big.Int).ModInverse(big.NewInt(int64(key.E)), new(big.Int).Mul(p, q)); key.D != nil {
			key.DP, key.DQ = new(big.Int).Mod(key.D, p), new(big.Int).Mod(key.D, q)
		}
	}
	encoded, err := asn1.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: one}
	certificate, err := x509.CreateCertificate(rand.Reader, template, &x509.Certificate{}, &rsa.PublicKey{N: key.N, E: key.E}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return &etcd.TLS{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: encoded}),
	}
}
