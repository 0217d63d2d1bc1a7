package faultproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// start starts a proxy in front of handler.
func start(t *testing.T, handler http.HandlerFunc) *Proxy {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := Start(target, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

func send(t *testing.T, method, url string) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // otherwise, a client retries a request if its reused connection is cut
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// readsLate is a transport that does not read the request body until the channel is closed, when the response has
// already started. If it cannot read the body, it cuts off the response.
type readsLate chan struct{}

func (late readsLate) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "begin ")
		<-late
		body, err := io.ReadAll(r.Body)
		_, _ = w.Write(body)
		w.CloseWithError(err)
	}()
	return &http.Response{StatusCode: http.StatusOK, Request: r, ProtoMajor: 1, ProtoMinor: 1, Body: answer}, nil
}

func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	late := make(readsLate)
	proxy, err := Start(&url.URL{Scheme: "http", Host: "127.0.0.1:1"}, late)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, proxy.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	begin := make([]byte, len("begin "))
	_, err = io.ReadFull(response.Body, begin)
	close(late)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "body" {
		t.Errorf("the answer ends in %q: %v", rest, err)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		method, path string
		want         Request
	}{
		{"GET", "/version", Request{Verb: "get"}},
		{"GET", "/apis", Request{Verb: "get"}},
		{"GET", "/api/v1/pods?limit=500", Request{Verb: "list", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/n/pods?watch=true", Request{Verb: "watch", Resource: "pods", Namespace: "n"}},
		{"GET", "/api/v1/namespaces/n/pods/p", Request{Verb: "get", Resource: "pods", Namespace: "n", Name: "p"}},
		{"GET", "/api/v1/namespaces/n", Request{Verb: "get", Resource: "namespaces", Name: "n"}},
		{"POST", "/api/v1/namespaces/n/pods/p/portforward", Request{Verb: "create", Resource: "pods/portforward", Namespace: "n", Name: "p"}},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Request{Verb: "create", Resource: "selfsubjectaccessreviews"}},
		{"POST", "/api/v1/namespaces/n/secrets", Request{Verb: "create", Resource: "secrets", Namespace: "n", Write: 1}},
		{"PATCH", "/apis/apps/v1/namespaces/n/statefulsets/a?fieldManager=q", Request{Verb: "patch", Resource: "statefulsets", Namespace: "n", Name: "a", Write: 1}},
		{"PATCH", "/apis/apps/v1/namespaces/n/statefulsets/a?dryRun=All", Request{Verb: "patch", Resource: "statefulsets", Namespace: "n", Name: "a"}},
		{"PATCH", "/apis/etcd.quorate.dev/v1alpha1/namespaces/n/etcdclusters/a/status", Request{Verb: "patch", Resource: "etcdclusters/status", Namespace: "n", Name: "a", Write: 1}},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/a", Request{Verb: "update", Resource: "leases", Namespace: "n", Name: "a", Write: 1}},
		{"DELETE", "/api/v1/namespaces/n/pods/p", Request{Verb: "delete", Resource: "pods", Namespace: "n", Name: "p", Write: 1}},
		{"DELETE", "/api/v1/namespaces/n/pods", Request{Verb: "deletecollection", Resource: "pods", Namespace: "n", Write: 1}},
	} {
		test.want.Path = test.path
		if got := parse(httptest.NewRequest(test.method, test.path, nil)); got != test.want {
			t.Errorf("%s %s: got %+v, want %+v", test.method, test.path, got, test.want)
		}
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	proxy := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
	})
	for _, method := range []string{"GET", "POST", "GET", "POST"} {
		if _, _, err := send(t, method, proxy.URL+"/api/v1/namespaces/n/pods"); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range proxy.Requests() {
		got = append(got, fmt.Sprint(r.Index, r.Write, r.Verb, r.Status))
	}
	if want := "[1 0list200 2 1create201 3 0list200 4 2create201]"; strings.ReplaceAll(fmt.Sprint(got), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("recorded %v, want %v", got, want)
	}
	if n := len(proxy.Writes()); n != 2 {
		t.Errorf("%d writes recorded, want 2", n)
	}
	proxy.Break(nil)
	if n := len(proxy.Requests()); n != 0 {
		t.Errorf("%d requests left after recording began again", n)
	}
}

func TestAnswer(t *testing.T) {
	var reached atomic.Int32
	proxy := start(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	proxy.Break(At(2, Answer(http.StatusTooManyRequests)))
	for i, want := range []int{200, 429, 200} {
		code, body, err := send(t, "POST", proxy.URL+"/api/v1/namespaces/n/pods")
		if err != nil || code != want {
			t.Errorf("request %d: %d %s %v, want %d", i+1, code, body, err, want)
		}
		if want == 429 && !strings.Contains(body, `"reason":"TooManyRequests"`) {
			t.Errorf("request %d: no Status as the API server writes it: %s", i+1, body)
		}
	}
	if n := reached.Load(); n != 2 {
		t.Errorf("%d requests reached the server, want 2", n)
	}
}

func TestHangEndsWithTheClient(t *testing.T) {
	var reached atomic.Int32
	proxy := start(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	hung, ended := make(chan struct{}), make(chan struct{})
	proxy.Break(func(Request) Fault {
		return func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
			close(hung)
			defer close(ended)
			Hang()(w, r, serve)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	request, err := http.NewRequestWithContext(ctx, "POST", proxy.URL+"/api/v1/namespaces/n/pods", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
		t.Fatal("answered")
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("still hanging after the client has gone")
	}
	if reached.Load() != 0 {
		t.Error("a hanging request reached the server")
	}
}

func TestDropAnswerLetsTheRequestTakeEffect(t *testing.T) {
	var reached, then atomic.Int32
	proxy := start(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	proxy.Break(AtWrite(1, DropAnswer(func() { then.Add(reached.Load()) })))
	if code, _, err := send(t, "POST", proxy.URL+"/api/v1/namespaces/n/pods"); err == nil {
		t.Errorf("answered %d", code)
	}
	if reached.Load() != 1 || then.Load() != 1 {
		t.Errorf("reached the server %d times, and then ran %d times after that; want once each", reached.Load(), then.Load())
	}
	if requests := proxy.Requests(); requests[0].Status != 200 {
		t.Errorf("the answer is not recorded: %v", requests)
	}
}

func TestRefuseAndScripts(t *testing.T) {
	proxy := start(t, func(http.ResponseWriter, *http.Request) {})
	proxy.Break(On("list", "pods", Refuse()))
	if _, _, err := send(t, "GET", proxy.URL+"/api/v1/pods"); err == nil {
		t.Error("a refused request was answered")
	}
	if code, _, err := send(t, "GET", proxy.URL+"/api/v1/services"); err != nil || code != 200 {
		t.Errorf("another request: %d %v", code, err)
	}
	proxy.Break(FirstOfEach(Answer(500)))
	for _, want := range []int{500, 200, 200} {
		if code, _, err := send(t, "GET", proxy.URL+"/api/v1/pods"); err != nil || code != want {
			t.Errorf("%d %v, want %d", code, err, want)
		}
	}
}

func TestUpgradePassesThrough(t *testing.T) {
	proxy := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		_, _ = io.Copy(connection, buffer)
	})
	connection, err := net.Dial("tcp", strings.TrimPrefix(proxy.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprint(connection, "POST /api/v1/namespaces/n/pods/p/portforward HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", response, err)
	}
	fmt.Fprint(connection, "echo\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "echo\n" {
		t.Errorf("read %q, %v from the upgraded connection", line, err)
	}
	if len(proxy.Writes()) != 0 {
		t.Errorf("a connection into a pod counts as a write: %v", proxy.Writes())
	}
}
