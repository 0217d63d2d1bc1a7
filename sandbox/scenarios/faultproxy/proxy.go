// Package faultproxy is a reverse proxy for a Kubernetes API server. It records every request and breaks selected
// requests: it returns an error, does not respond, or drops the response to a request that took effect.
package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// Proxy listens on a loopback port over plain HTTP. A kubeconfig with the proxy's URL does not need credentials,
// because the proxy's transport adds them.
type Proxy struct {
	// URL is the URL of the proxy.
	URL string

	server  *http.Server
	forward *httputil.ReverseProxy
	stop    context.CancelFunc

	mutex    sync.Mutex
	dial     Dial
	script   Script
	requests []*Request
	writes   int
}

// Start starts a proxy for the API server at target. The transport must use HTTP/1.1, because connections to pods are
// protocol upgrades.
func Start(target *url.URL, transport http.RoundTripper) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fault proxy: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	silent := log.New(io.Discard, "", 0)
	p := &Proxy{URL: "http://" + listener.Addr().String(), stop: stop}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ErrorLog:       silent,
		ModifyResponse: p.answered,
	}
	p.server = &http.Server{Handler: p, ErrorLog: silent,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close stops the proxy and closes every connection through it.
func (p *Proxy) Close() {
	p.stop()
	_ = p.server.Close()
}

// Break sets the script, or removes it if script is nil, and resets the counters and the recorded requests.
func (p *Proxy) Break(script Script) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.script, p.requests, p.writes = script, nil, 0
}

// Requests returns the requests recorded since the last Break.
func (p *Proxy) Requests() []Request {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var list []Request
	for _, r := range p.requests {
		list = append(list, *r)
	}
	return list
}

// Writes returns the recorded requests that write.
func (p *Proxy) Writes() []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool { return r.Write == 0 })
}

// ServeHTTP forwards the request or, if the script returns a fault, breaks it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := parse(r)
	fault := p.record(&request)
	r = r.WithContext(context.WithValue(r.Context(), recordKey{}, &request))
	var serve http.Handler = p.forward
	if request.Resource == "pods/portforward" && p.dial != nil {
		serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.forwardPort(w, r, &request) })
	}
	if err := hold(r); err != nil {
		panic(http.ErrAbortHandler)
	}
	if fault == nil {
		serve.ServeHTTP(w, r)
		return
	}
	fault(w, r, serve)
}

// hold reads the whole body of a request before it is forwarded. The API server may respond before the transport has
// read the whole body. The proxy's HTTP server then closes the body, and the transport would cut off the response.
func hold(r *http.Request) error {
	if r.ContentLength <= 0 {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

func (p *Proxy) record(request *Request) Fault {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.requests = append(p.requests, request)
	request.Index = len(p.requests)
	if request.Write > 0 {
		p.writes++
		request.Write = p.writes
	}
	if p.script == nil {
		return nil
	}
	return p.script(*request)
}

type recordKey struct{}

func (p *Proxy) answered(response *http.Response) error {
	if request, ok := response.Request.Context().Value(recordKey{}).(*Request); ok {
		p.answeredWith(request, response.StatusCode)
	}
	return nil
}

func (p *Proxy) answeredWith(request *Request, status int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	request.Status = status
}
