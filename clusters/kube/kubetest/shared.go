package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Tests are the tests of a package that calls Shared. TestMain runs them.
type Tests struct{ *testing.M }

// Run runs the tests, and then ends the servers that they have shared. It returns the exit code.
func (t Tests) Run() int {
	shared.mu.Lock()
	shared.ends = true
	shared.mu.Unlock()
	defer shared.end()
	return t.M.Run()
}

// Shared returns an API server on which prepare has been called, and which otherwise contains only the objects that an
// API server creates at startup. Tests that run one after another share it, because starting an API server takes
// seconds of CPU time. Tests that run at the same time use different servers. When the test ends, the objects are
// reset. Tests that restart the API server or its etcd, or change definitions that prepare installs, must call Start
// instead.
//
// All tests of a package must pass the same prepare, and TestMain must run them with Tests.
func Shared(t *testing.T, prepare func(*Server) error) *Server {
	t.Helper()
	program, etcds := programs(t)
	l := shared.idle()
	if l == nil {
		l = &lender{}
		if !shared.add(l) {
			t.Fatal("TestMain does not run kubetest.Tests")
		}
		l.start(t, program, etcds, prepare)
	}
	t.Cleanup(func() {
		if err := l.reset(); err != nil {
			t.Logf("the next test starts a new API server, because this one cannot be reset: %v", err)
			return
		}
		shared.giveBack(l)
	})
	return l.server
}

// shared contains the servers that tests share.
var shared servers

type servers struct {
	mu   sync.Mutex
	ends bool // the servers end after the tests
	all  []*lender
	free []*lender
}

// idle returns a server that no test uses, or nil.
func (s *servers) idle() *lender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return nil
	}
	last := len(s.free) - 1
	l := s.free[last]
	s.free = s.free[:last]
	return l
}

// add registers a server. It reports whether the server will be ended after the tests.
func (s *servers) add(l *lender) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, l)
	return s.ends
}

func (s *servers) giveBack(l *lender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

func (s *servers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		l.end()
	}
}

// lender owns a server that outlives the tests that use it.
type lender struct {
	server   *Server
	prepared map[string]string // the contents of etcd before the first test
	lists    map[string]schema.GroupVersionResource
	cleanups []func()
}

// forTest makes the lender the owner of a server. Errors fail the test that starts the server.
type forTest struct {
	*testing.T
	l *lender
}

func (f forTest) Cleanup(end func()) { f.l.cleanups = append(f.l.cleanups, end) }

func (f forTest) TempDir() string {
	f.Helper()
	dir, err := os.MkdirTemp("", "kubetest")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (l *lender) end() {
	for _, end := range slices.Backward(l.cleanups) {
		end()
	}
}

func (l *lender) start(t *testing.T, program, etcds string, prepare func(*Server) error) {
	t.Helper()
	l.server = start(forTest{t, l}, program, etcds)
	if err := prepare(l.server); err != nil {
		t.Fatal(err)
	}
	var err error
	started := func(context.Context) (bool, error) {
		err = l.startedUp()
		return err == nil, nil
	}
	_ = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, started)
	if err == nil {
		l.lists, err = l.listable()
	}
	if err == nil {
		l.prepared, err = l.server.Etcd.contents()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startedUp returns an error until the API server has created the objects that it creates at startup.
func (l *lender) startedUp() error {
	ctx, core := context.Background(), l.server.Client.CoreV1()
	if err := l.server.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	_, err := core.Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	return err
}

// listable returns the resources that can be listed, by the names under which etcd stores them.
func (l *lender) listable() (map[string]schema.GroupVersionResource, error) {
	all, err := l.server.Client.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists := map[string]schema.GroupVersionResource{}
	for _, group := range all {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range group.APIResources {
			if slices.Contains(r.Verbs, "list") {
				lists[r.Name] = version.WithResource(r.Name)
			}
		}
	}
	return lists, nil
}

// maintained contains prefixes of the keys of objects that the API server itself keeps up to date.
var maintained = []string{
	"/registry/apiregistration.k8s.io/", "/registry/configmaps/kube-system/extension-apiserver-authentication",
	"/registry/endpointslices/default/kubernetes", "/registry/flowschemas/", "/registry/ipaddresses/",
	"/registry/leases/kube-system/", "/registry/masterleases/", "/registry/prioritylevelconfigurations/",
	"/registry/ranges/", "/registry/servicecidrs/", "/registry/services/endpoints/default/kubernetes",
	"/registry/services/specs/default/kubernetes",
}

// reset restores the objects as they were before the first test. It writes directly to etcd, because the API server
// would wait for finalizers, and for controllers that do not run here. It returns once the API server has noticed.
func (l *lender) reset() error {
	now, err := l.server.Etcd.contents()
	if err != nil {
		return err
	}
	changed := map[string]schema.GroupVersionResource{}
	for key := range union(now, l.prepared) {
		was, prepared := l.prepared[key]
		is, exists := now[key]
		if prepared == exists && is == was || slices.ContainsFunc(maintained, func(prefix string) bool {
			return strings.HasPrefix(key, prefix)
		}) {
			continue
		}
		if err := l.server.Etcd.set(key, was, prepared); err != nil {
			return err
		}
		for _, name := range strings.Split(key, "/") {
			if list, found := l.lists[name]; found {
				changed[name] = list
			}
		}
	}
	for _, list := range changed { // the API server waits until its cache is as new as etcd
		_, err := l.server.Objects.Resource(list).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// contents returns the API server's keys and values in etcd.
func (e *Etcd) contents() (map[string]string, error) {
	var answer struct {
		KVs []struct{ Key, Value []byte }
	}
	err := e.call("range", map[string]any{"key": []byte("/registry/"), "range_end": []byte("/registry0")}, &answer)
	if err == nil && len(answer.KVs) == 0 {
		err = errors.New("etcd contains no keys of an API server")
	}
	contents := map[string]string{}
	for _, kv := range answer.KVs {
		contents[string(kv.Key)] = string(kv.Value)
	}
	return contents, err
}

// set writes a key if it should exist, and deletes it otherwise.
func (e *Etcd) set(key, value string, exists bool) error {
	if !exists {
		return e.call("deleterange", map[string]any{"key": []byte(key)}, &struct{}{})
	}
	return e.call("put", map[string]any{"key": []byte(key), "value": []byte(value)}, &struct{}{})
}

// call sends a request to etcd's HTTP gateway.
func (e *Etcd) call(method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", method, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
