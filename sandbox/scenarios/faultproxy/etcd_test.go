package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/spdy"
)

// plainHTTP2 returns the protocols that etcd uses without TLS, which are only cleartext HTTP/2.
func plainHTTP2() *http.Protocols {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

// watched starts a proxy for a server that acts as etcd in all pods. It returns the proxy and a client for one pod.
func watched(t *testing.T, answer http.HandlerFunc) (*Proxy, *http.Client) {
	t.Helper()
	etcd, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Protocols: plainHTTP2(), Handler: answer}
	go func() { _ = server.Serve(etcd) }()
	t.Cleanup(func() { server.Close() })
	proxy := start(t, func(http.ResponseWriter, *http.Request) { t.Error("the API server is asked") })
	proxy.WatchEtcd(func(_ context.Context, namespace, pod, port string) (net.Conn, error) {
		if namespace+"/"+pod+":"+port != "n/a-0:2379" {
			return nil, errors.New("connection refused")
		}
		return net.Dial("tcp", etcd.Addr().String())
	})
	return proxy, &http.Client{Transport: &http.Transport{Protocols: plainHTTP2(), DialContext: func(context.Context, string, string) (net.Conn, error) {
		data, _, err := forward(t, proxy, "a-0")
		return data, err
	}}}
}

// forward connects to port 2379 of a pod as kubectl does, and returns the data and error streams.
func forward(t *testing.T, proxy *Proxy, pod string) (data net.Conn, complaints io.Reader, err error) {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: proxy.URL})
	if err != nil {
		return nil, nil, err
	}
	target, err := url.Parse(proxy.URL + "/api/v1/namespaces/n/pods/" + pod + "/portforward")
	if err != nil {
		return nil, nil, err
	}
	connection, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target).Dial("portforward.k8s.io")
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { connection.Close() })
	headers := http.Header{}
	headers.Set(corev1.PortHeader, "2379")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	complaint, err := connection.CreateStream(headers)
	if err != nil {
		return nil, nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	stream, err := connection.CreateStream(headers)
	if err != nil {
		return nil, nil, err
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(stream, far) }()
	go func() { _, _ = io.Copy(far, stream); far.Close() }()
	return near, complaint, nil
}

// call sends a message to a method and returns the gRPC status.
func call(client *http.Client, method string, message ...byte) (string, error) {
	body := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	request, err := http.NewRequest(http.MethodPost, "http://a-0/etcdserverpb.Cluster/"+method, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		return "", err
	}
	return response.Trailer.Get("Grpc-Status"), nil
}

func TestEtcdIsSeen(t *testing.T) {
	proxy, client := watched(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", map[bool]string{true: "9", false: "0"}[strings.HasSuffix(r.URL.Path, "MemberPromote")])
	})
	for _, c := range []struct {
		method  string
		message []byte
		status  string
	}{
		{"MemberList", nil, "0"}, {"MemberAdd", []byte{0x0a, 0}, "0"}, {"MemberPromote", nil, "9"},
		{"Alarm", nil, "0"}, {"Alarm", []byte{0x08, 2}, "0"}, {"Downgrade", []byte{0x12, 0}, "0"}, {"Downgrade", []byte{0x08, 1}, "0"},
	} {
		if status, err := call(client, c.method, c.message...); err != nil || status != c.status {
			t.Errorf("%s: status %q, %v", c.method, status, err)
		}
	}
	var writes []string
	for _, w := range proxy.Writes() {
		writes = append(writes, w.Verb+" "+w.Resource+" "+w.Name+" "+http.StatusText(w.Status))
	}
	want := []string{"call etcd MemberAdd OK", "call etcd MemberPromote Internal Server Error", "call etcd Alarm OK", "call etcd Downgrade OK"}
	if !slices.Equal(writes, want) {
		t.Errorf("writes %q, want %q", writes, want)
	}
}

func TestEtcdIsBroken(t *testing.T) {
	var reached atomic.Int32
	proxy, client := watched(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Grpc-Status", map[bool]string{true: "0", false: "9"}[reached.Add(1)%2 == 0])
	})
	on := func(fault Fault) Script { return when(fault, func(r Request) bool { return r.Name == "MemberAdd" }) }
	proxy.Break(on(Refuse()))
	if _, err := call(client, "MemberAdd"); err == nil || reached.Load() != 0 {
		t.Errorf("a refused call got through %d times: %v", reached.Load(), err)
	}
	proxy.Break(on(DropSuccess(2, nil)))
	for i, want := range []string{"9", "0", "9", ""} { // every other call succeeds
		if status, err := call(client, "MemberAdd"); status != want || (err == nil) != (want != "") {
			t.Errorf("call %d: status %q, %v, want %q", i+1, status, err, want)
		}
	}
	if reached.Load() != 4 {
		t.Errorf("%d calls took effect, want 4", reached.Load())
	}
	if status, err := call(client, "MemberList"); err != nil || status != "9" {
		t.Errorf("no call gets through after that: %q, %v", status, err)
	}
}

func TestEtcdIsAway(t *testing.T) {
	proxy, _ := watched(t, func(http.ResponseWriter, *http.Request) {})
	_, complaints, err := forward(t, proxy, "a-1")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(complaints); err != nil || !strings.Contains(string(text), "connection refused") {
		t.Errorf("%q, %v", text, err)
	}
}
