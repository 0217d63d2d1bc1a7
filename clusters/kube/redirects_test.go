package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/kube"
)

// TestRedirectsAreNotFollowed checks that an API server cannot redirect requests, including their token, to an address
// that only this machine can reach, and make an error reveal the response.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		var asked atomic.Int32
		metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"Code": "Success", "SecretAccessKey": "s3cret"}`)
		}))
		t.Cleanup(metadata.Close)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, metadata.URL+"/latest/meta-data", code)
		}))
		t.Cleanup(server.Close)
		client, err := kube.New(&rest.Config{Host: server.URL, BearerToken: "own"})
		if err != nil {
			t.Fatal(err)
		}
		_, list := client.List(t.Context(), "ns", "a=b", nil)
		_, look := client.Look(t.Context(), "Pod", "ns", "a-0")
		_, names := client.ClusterID(t.Context())
		_, clock := client.Clock(t.Context())
		_, _ = client.PortForward(t.Context(), "ns", "a-0", 2379)
		if asked.Load() > 0 || list == nil || look == nil || names == nil {
			t.Errorf("%d is followed %d times: %v", code, asked.Load(), list)
		}
		for _, err := range []error{list, look, names, clock} {
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
		}
	}
}
