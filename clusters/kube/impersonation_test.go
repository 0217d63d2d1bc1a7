package kube_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/kube"
)

// TestEmptyImpersonationIsRejected checks that an empty user name is rejected, because requests would be made as the
// process itself (CVE-2026-23990).
func TestEmptyImpersonationIsRejected(t *testing.T) {
	for want, as := range map[string]kube.Impersonation{
		"empty name, so": {},
		"its own rights": {User: " ", Groups: []string{"team"}},
		"a group of the impersonated user ann has": {User: "ann", Groups: []string{"team", ""}},
	} {
		config, err := kube.As(&rest.Config{BearerToken: "own"}, as)
		if config != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want %q", as, config, err, want)
		}
	}
}

// TestEveryRequestIsMadeAsSomebody checks that every request has the impersonation headers, even requests that are
// rejected.
func TestEveryRequestIsMadeAsSomebody(t *testing.T) {
	var mu sync.Mutex
	var asked, own []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
		if r.Header.Get("Impersonate-User") != "ann" || !slices.Equal(r.Header.Values("Impersonate-Group"), []string{"team", "more"}) {
			own = append(own, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	config, err := kube.As(&rest.Config{Host: server.URL}, kube.Impersonation{User: "ann", Groups: []string{"team", "more"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.List(t.Context(), "ns", "a=b", nil); err == nil {
		t.Error("a forbidden resource is listed")
	}
	_, _ = client.Nodes(t.Context())
	_, _ = client.Volume(t.Context(), "v")
	_, _ = client.Look(t.Context(), "Pod", "ns", "a-0")
	_, _ = client.PortForward(t.Context(), "ns", "a-0", 2379)
	if mu.Lock(); len(asked) < 5 || len(own) > 0 {
		t.Errorf("asked %q, as itself %q", asked, own)
	}
	mu.Unlock()
}
