package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Dial connects to a port of a pod.
type Dial func(ctx context.Context, namespace, pod, port string) (net.Conn, error)

// etcdChanges lists the calls that change an etcd cluster. All other calls only read data or write keys.
var etcdChanges = []string{"MemberAdd", "MemberRemove", "MemberUpdate", "MemberPromote", "MoveLeader", "Defragment"}

// etcdActions lists the calls that change something only if they name an action.
var etcdActions = []string{"Alarm", "Downgrade"}

// WatchEtcd makes the proxy terminate connections to pods, so that it sees each call to etcd. Like requests to the API
// server, calls are recorded and can be made to fail. Their status is 200, or 500 if etcd rejects the call. The
// clusters must not use TLS, because the proxy accepts only cleartext HTTP/2.
func (p *Proxy) WatchEtcd(dial Dial) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.dial = dial
}

// forwardPort handles a port-forward request without the API server.
func (p *Proxy) forwardPort(w http.ResponseWriter, r *http.Request, request *Request) {
	// Clients fall back from WebSockets to SPDY, which Kubernetes' own packages can decode.
	if r.Method != http.MethodPost {
		http.Error(w, "WebSockets are not supported", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	p.answeredWith(request, http.StatusSwitchingProtocols)
	var complaints httpstream.Stream
	connection := spdy.NewResponseUpgrader().
		UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				complaints = stream
				return nil
			}
			go func() {
				<-replied
				p.connectPod(r.Context(), stream, complaints, request)
			}()
			return nil
		})
	if connection == nil {
		return
	}
	defer connection.Close()
	select {
	case <-connection.CloseChan():
	case <-r.Context().Done():
	}
}

// connectPod connects a stream to a pod until either side closes the connection.
func (p *Proxy) connectPod(ctx context.Context, stream, complaints httpstream.Stream, request *Request) {
	defer func() { _ = stream.Reset() }()
	port := stream.Headers().Get(corev1.PortHeader)
	pod, err := p.dial(ctx, request.Namespace, request.Name, port)
	if err != nil {
		fmt.Fprintf(complaints, "connect to port %s of %s: %v", port, request.Name, err)
		complaints.Close()
		return
	}
	defer pod.Close()
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(far, stream); far.Close() }()
	go p.serveCalls(near, pod)
	_, _ = io.Copy(stream, far)
}

// serveCalls accepts calls on the client connection and forwards them to etcd over the pod connection.
func (p *Proxy) serveCalls(client, pod net.Conn) {
	clear := &http.Protocols{}
	clear.SetUnencryptedHTTP2(true)
	silent := log.New(io.Discard, "", 0)
	transport := &http.Transport{
		Protocols:          clear,
		DisableCompression: true,
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return pod, nil },
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "etcd"}) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	server := &http.Server{Protocols: clear, ErrorLog: silent,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil { // a broken call also ends its connection
					client.Close()
				}
			}()
			p.serveCall(w, r, forward)
		})}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			end()
		}
	}
	_ = server.Serve(&single{conn: client, ended: ended})
	pod.Close()
}

func (p *Proxy) serveCall(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	request := Request{Verb: "call", Resource: "etcd", Name: method, Path: r.URL.Path}
	if slices.Contains(etcdChanges, method) || slices.Contains(etcdActions, method) && namesAction(r) {
		request.Write = 1
	}
	fault := p.record(&request)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward.ServeHTTP(w, r)
		status := http.StatusOK
		if !succeeded(status, w.Header()) {
			status = http.StatusInternalServerError
		}
		p.answeredWith(&request, status)
	})
	if fault == nil {
		serve(w, r)
		return
	}
	fault(w, r, serve)
}

// succeeded reports whether a request took effect, given the status code and header of its response. gRPC returns its
// own status code in the header.
func succeeded(code int, header http.Header) bool {
	for _, key := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if status := header.Get(key); status != "" && status != "0" {
			return false
		}
	}
	return code < http.StatusBadRequest
}

// namesAction reports whether the message in the body contains its first field, which is the action in the calls that
// etcdActions lists. The field is absent if the action is zero, as in calls that only read.
func namesAction(r *http.Request) bool {
	const prefix = 5 // the length of the prefix of every gRPC message
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return err == nil && len(body) > prefix && body[prefix] == 0x08
}

// single is a listener that accepts one existing connection.
type single struct {
	conn  net.Conn
	ended <-chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if conn := s.conn; conn != nil {
		s.conn = nil
		return conn, nil
	}
	<-s.ended
	return nil, errors.New("the connection has ended")
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{Name: "pod"} }
