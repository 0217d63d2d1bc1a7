package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"quorate.dev/quorate/clusters/etcd"
)

// TestPanicWhileDialing: connections are made in goroutines of gRPC's, where nobody else can
// recover.
func TestPanicWhileDialing(t *testing.T) {
	cluster := newStrangers(t, 1).cluster()
	cluster.Dial = func(context.Context, string) (net.Conn, error) { panic("no way") }
	answer := newClients(t).Observe(t.Context(), cluster)
	if m := answer.Membership; m.Known || !strings.HasPrefix(m.Why, `a-0: panic: "no way"`) {
		t.Errorf("got %s", print(answer))
	}
}

// TestHostileCertificate: the names in a certificate are words of a stranger's, too.
func TestHostileCertificate(t *testing.T) {
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

// TestLongSecrets: whoever can write a Secret does not hold up the pass with it.
func TestLongSecrets(t *testing.T) {
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
