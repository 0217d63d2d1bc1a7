package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
)

// withoutHistory serves a tenant's repository, but never responds to requests for more of its history.
func withoutHistory(w *tenants, tenant string) (url string, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	backend := &cgi.Handler{
		Path: filepath.Join(w.git(tenant, "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + w.repository(tenant), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("deepen 50")) {
			asked.Add(1)
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		backend.ServeHTTP(rw, r)
	}))
	w.Cleanup(server.Close)
	return server.URL + "/.git", asked
}

// TestSlowHistoryDoesNotDelayOtherSources checks that a server that responds to all requests except those for history
// delays its own clusters by only one timeout, no matter how many revisions are recorded, and does not delay other
// sources.
func TestSlowHistoryDoesNotDelayOtherSources(t *testing.T) {
	w := newTenants(t, "good", "evil")
	w.made("good/one", "evil/one", "evil/two", "evil/three")
	w.push("good", "good/one")
	w.push("evil", "evil/one", "evil/two", "evil/three")
	url, asked := withoutHistory(w, "evil")
	for i, name := range []string{"evil/one", "evil/two", "evil/three"} { // as anyone with write access could
		live := w.cluster(name)
		s := live.Status
		s.SourceRevision, s.DeclaredSource = "main@sha1:"+strings.Repeat(string(rune('a'+i)), 40), url
		if _, err := w.client.ApplyStatus(w.Context(), live, s); err != nil {
			t.Fatal(err)
		}
	}
	got := w.bare("run", "--kubeconfig", w.kubeconfig, "--source", w.repository("good")+",allow-namespace=good",
		"--source", url+",allow-namespace=evil,fetch-timeout=15s", "--timeout", "90s")
	if w.cluster("good/one").Status.DeclaredRevision == "" {
		t.Errorf("good/one was not looked at: %+v", got)
	}
	if n := asked.Load(); n != 1 || w.cluster("evil/one").Status.DeclaredRevision == "" || !strings.Contains(got.out, "searching the history took longer than 15s") {
		t.Errorf("asked %d times: %+v", n, got)
	}
	good, evil := strings.Index(got.err, "cluster=good/one"), strings.Index(got.err, "cluster=evil/one")
	if good < 0 || evil < good {
		t.Errorf("evil/one had its turn before good/one: %s", got.err)
	}
}

// TestForcePushesDoNotDelayOtherSources checks that a loop processes the clusters of other sources even if a branch is
// force-pushed before each read and any source may declare clusters in any namespace. The force-pushed revisions are
// refused.
func TestForcePushesDoNotDelayOtherSources(t *testing.T) {
	w := newTenants(t, "good", "evil")
	w.made("good/one", "evil/one")
	w.push("good", "good/one")
	root := w.push("evil")
	w.push("evil", "evil/one")
	var attacks atomic.Bool
	var pushing sync.Mutex
	pushes := 0
	git := (&gittest.Repository{T: t, Dir: w.repository("evil")}).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && attacks.Load() {
			pushing.Lock()
			pushes++
			w.git("evil", "reset", "--quiet", "--hard", root)
			w.push("evil", "evil/one", fmt.Sprintf("good/evil-%d", pushes))
			pushing.Unlock()
		}
		git.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	sources := append(w.sources("good"), "--source", server.URL+"/.git")
	if got := w.run(sources...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	attacks.Store(true)
	l := w.loop(sources...)
	next := w.push("good", "good/one", "good/two") // changes the revision
	w.until("a push was not processed", "good/one", next)
	l.stop(t)
	if pushes < 2 || strings.Contains(l.said.String(), "good/evil-") {
		t.Errorf("after %d force-pushes:\n%s", pushes, l.said.String())
	}
}
