package kube

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/kube/kubetest"
)

func TestVerbs(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api/v1/pods?limit=500":                                        "list",
		"GET /api/v1/namespaces/shop/pods":                                  "list",
		"GET /api/v1/namespaces/shop/pods?watch=true":                       "watch",
		"GET /api/v1/pods?watch=1":                                          "watch",
		"GET /api/v1/pods?watch=false":                                      "list",
		"GET /api/v1/namespaces/shop/pods/a-0":                              "get",
		"GET /api/v1/namespaces":                                            "list",
		"GET /api/v1/namespaces/shop":                                       "get",
		"GET /api/v1/nodes/n":                                               "get",
		"GET /apis/apps/v1/namespaces/shop/statefulsets":                    "list",
		"GET /apis/etcd.quorate.dev/v1alpha1/etcdclusters":                  "list",
		"GET /apis/apps/v1":                                                 "get",
		"GET /version":                                                      "get",
		"GET /":                                                             "get",
		"POST /api/v1/namespaces/shop/secrets":                              "create",
		"PUT /apis/coordination.k8s.io/v1/namespaces/shop/leases/a":         "update",
		"PATCH /apis/apps/v1/namespaces/shop/statefulsets/a":                "patch",
		"APPLY /apis/apps/v1/namespaces/shop/statefulsets/a":                "apply",
		"DELETE /api/v1/namespaces/shop/pods/a-0":                           "delete",
		"GET /api/v1/namespaces/shop/pods/a-0/portforward":                  "connect",
		"POST /api/v1/namespaces/shop/pods/a-0/portforward":                 "connect",
		"GET /api/v1/namespaces/shop/pods/portforward":                      "get",
		"GET /k8s/clusters/api/api/v1/pods":                                 "list",
		"GET /k8s/clusters/api/apis/apps/v1/namespaces/shop/statefulsets/a": "get",
		"BREW /api/v1/pods":                                                 "other",
	} {
		method, path, _ := strings.Cut(request, " ")
		header := http.Header{}
		if method == "APPLY" {
			method = http.MethodPatch
			header.Set("Content-Type", "application/apply-patch+yaml")
		}
		r, err := http.NewRequest(method, "https://host"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		base := ""
		if strings.HasPrefix(path, "/k8s/") {
			base = "/k8s/clusters/api/"
		}
		r.Header = header
		if got := verbOf(r, base); got != want || !slices.Contains(Verbs(), got) {
			t.Errorf("%s is a %s, want %s", request, got, want)
		}
	}
}

// counting records the counted requests.
type counting struct {
	mu   sync.Mutex
	seen []string
}

func (c *counting) count(verb string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf("%s %d", verb, status))
}

// TestRequestsAreCounted checks that all requests are counted: requests of each client, impersonated requests, and
// port-forwards, for which two protocols are tried.
func TestRequestsAreCounted(t *testing.T) {
	config := kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/etcdclusters") {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}`)
	})
	as, err := As(config, Impersonation{User: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*rest.Config{"as itself": config, "as somebody": as} {
		t.Run(name, func(t *testing.T) {
			c := &counting{}
			client, err := New(Counted(config, c.count))
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Lease(t.Context(), "shop", "a")
			errs := []error{err}
			_, err = client.TakeLease(t.Context(), metav1.ObjectMeta{Namespace: "shop", Name: "a"}, nil, "me", time.Second, time.Now())
			errs = append(errs, err)
			_, err = client.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("etcdclusters")).Create(t.Context(), &unstructured.Unstructured{}, metav1.CreateOptions{})
			errs = append(errs, err)
			_, err = client.watches.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Watch(t.Context(), metav1.ListOptions{})
			errs = append(errs, err)
			_, err = client.PortForward(t.Context(), "shop", "a-0", 2379)
			errs = append(errs, err)
			if slices.Contains(errs, nil) {
				t.Errorf("%v", errs)
			}
			slices.Sort(c.seen)
			if want := []string{"connect 0", "connect 403", "create 0", "create 403", "list 403", "watch 403"}; !slices.Equal(c.seen, want) {
				t.Errorf("got %q, want %q", c.seen, want)
			}
		})
	}
	if config.WrapTransport != nil {
		t.Error("the configuration that was given is changed")
	}
}
