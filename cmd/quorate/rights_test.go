package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// asked is a request that reached the API server: the impersonated user, the method and path, and the response status.
type asked struct {
	as, method, path string
	status           int
}

// watcher is a proxy in front of the API server that records requests.
type watcher struct {
	url string
	mu  sync.Mutex
	all []asked
}

func newWatcher(w *tenants) *watcher {
	w.Helper()
	target, err := url.Parse(w.server.Config.Host)
	if err != nil {
		w.Fatal(err)
	}
	seen := &watcher{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // as in the kubeconfig of these tests
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.all = append(seen.all, asked{strings.Join(r.Request.Header.Values("Impersonate-User"), ","), r.Request.Method, r.Request.URL.RequestURI(), r.StatusCode})
		return nil
	}
	server := httptest.NewTLSServer(proxy)
	w.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	seen.url = server.URL
	return seen
}

func (s *watcher) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

var namespaced = regexp.MustCompile(`^/apis?/.*/namespaces/([^/]+)/`)

// within fails unless there were requests, and all of them were made in the given namespaces and allowed there. It
// ignores requests for nodes and persistent volumes, which are cluster-scoped.
func (s *watcher) within(t *testing.T, namespaces ...string) {
	t.Helper()
	all := s.requests()
	if len(all) == 0 {
		t.Error("no request was made")
	}
	for _, r := range all {
		in := namespaced.FindStringSubmatch(r.path)
		if in == nil && !strings.Contains(r.path, "/nodes") && !strings.Contains(r.path, "/persistentvolumes") || in != nil && !slices.Contains(namespaces, in[1]) {
			t.Errorf("beyond %q: %+v", namespaces, r)
		}
		if in != nil && r.status == http.StatusForbidden {
			t.Errorf("refused: %+v", r)
		}
	}
}

// through makes runs use a watcher, with a service account in namespace default.
func (w *tenants) through(account string) *watcher {
	w.Helper()
	w.account("default", account)
	return w.throughAs("default", account)
}

// throughAs is like through, but uses an existing service account.
func (w *tenants) throughAs(namespace, account string) *watcher {
	w.Helper()
	token, err := w.server.Client.CoreV1().ServiceAccounts(namespace).CreateToken(w.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	seen := newWatcher(w)
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig-"+account)
	w.write("kubeconfig-"+account, fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %s}}]}", seen.url, token.Status.Token))
	return seen
}

func (w *tenants) account(namespace, name string) {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.server.Client.CoreV1().ServiceAccounts(namespace).Create(w.Context(), account, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// role creates the ClusterRole defined in a file in deploy, and returns its name.
func (w *tenants) role(file string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", file))
	if err != nil {
		w.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(first), role); err != nil {
		w.Fatal(err)
	}
	if _, err := w.server.Client.RbacV1().ClusterRoles().Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	return role.Name
}

// allow grants an account in namespace default the rights of a ClusterRole in the given namespaces.
func (w *tenants) allow(account, role string, namespaces ...string) {
	w.Helper()
	for _, namespace := range namespaces {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
		}
		if _, err := w.server.Client.RbacV1().RoleBindings(namespace).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// authorized reports whether a user may list leases in a namespace.
func (w *tenants) authorized(user, namespace string) bool {
	w.Helper()
	review, err := w.server.Client.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Group: "coordination.k8s.io", Resource: "leases"},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return review.Status.Allowed
}

// TestOnlyAllowedNamespacesAreListed checks that an account with rights in two namespaces is sufficient for a run that
// is restricted to them by --allow-namespace or --namespace. The run does not request anything outside these namespaces
// from the API server, including Secrets.
func TestOnlyAllowedNamespacesAreListed(t *testing.T) {
	w := newTenants(t, "own", "also", "other")
	w.made("own/one", "also/one", "other/one")
	w.push("own", "own/one", "also/one", "also/new")
	role := w.role("base/rbac.yaml")
	for name, args := range map[string][]string{
		"allowed": {"run", "--allow-namespace", "own", "--allow-namespace", "also"},
		"several": {"run", "--namespace", "own", "-n", "also"},
		"settled": {"run", "--allow-namespace=own;also", "--until-converged"},
		"both":    {"run", "--allow-namespace", "own;also", "--namespace", "own;other"},
		"planned": {"plan", "-n", "own;also"},
		"status":  {"status", "-n", "own;also"},
		"explain": {"explain", "own/one"},
		"cluster": {"run", "-n", "own;also", "--source", "cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			v := *w
			v.T = t
			seen := v.through(name)
			v.allow(name, role, "own", "also")
			if args[0] != "status" && args[0] != "explain" && name != "cluster" {
				args = append(args, v.sources("own")...)
			}
			if got := v.command(args...); got.code != exitOK || strings.Contains(got.out, "other/") {
				t.Errorf("%+v", got)
			}
			seen.within(t, "own", "also")
		})
	}
}

// TestDisjointNamespaceFlagsAreRejected checks that a run is rejected if the sources may not declare anything in the
// given namespaces.
func TestDisjointNamespaceFlagsAreRejected(t *testing.T) {
	w := &tenants{T: t, kubeconfig: "/nowhere"}
	got := w.command("run", "--source", ".", "--allow-namespace", "own", "--namespace", "other")
	if got.code != exitInvalid || !strings.Contains(got.err, "--namespace other: no source may declare clusters there") {
		t.Errorf("%+v", got)
	}
	if got := w.command("run", "--source", ".", "--namespace", ""); got.code != exitInvalid || !strings.Contains(got.err, "is not a namespace name") {
		t.Errorf("%+v", got)
	}
}

// TestUnlistableNamespaceAffectsOnlyItsClusters checks that a namespace that cannot be listed affects only its own
// clusters. Clusters in other namespaces are processed, and clusters of the same source are not treated as removed or
// new.
func TestUnlistableNamespaceAffectsOnlyItsClusters(t *testing.T) {
	w := newTenants(t, "own", "also", "other")
	w.made("own/one", "own/two", "own/three", "also/one", "other/one")
	w.push("own", "own/one", "own/two", "own/three", "also/one")
	w.push("other", "other/one")
	role := w.role("base/rbac.yaml")
	w.through("account")
	w.allow("account", role, "own", "also", "other")
	sources := []string{
		"run", "--source", w.repository("own") + ",allow-namespace=own;also", "--source", w.repository("other") + ",allow-namespace=other",
	}
	if got := w.command(sources...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if err := w.server.Client.RbacV1().RoleBindings("also").Delete(t.Context(), "account", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.push("own", "own/one", "own/two", "own/new", "also/one")
	next := w.push("other", "other/one", "other/new")
	for w.authorized("system:serviceaccount:default:account", "also") { // the API server's authorizer updates asynchronously
	}
	got := w.command(sources...)
	if got.code != exitError || !strings.Contains(got.out, "error list namespace also, for "+w.repository("own")+": list ") || !strings.Contains(got.out, `also/one`) {
		t.Errorf("%+v", got)
	}
	if c := w.cluster("other/one"); c.Status.SourceRevision != "main@sha1:"+next || !strings.Contains(got.out, "other/new  Done") {
		t.Errorf("another tenant is delayed:\n%s", got.out)
	}
	if !strings.Contains(got.out, "error observe own/new: another namespace of its source could not be listed") {
		t.Errorf("it may be a cluster of the other namespace under a new name:\n%s", got.out)
	}
	status := w.command("status", "-n", "own;also", "--output", "json")
	if status.code != exitError || !strings.Contains(status.out, `"three"`) || !strings.Contains(status.err, "list namespace also: list ") {
		t.Errorf("existing clusters are not reported, or unknown ones are: %+v", status)
	}
	for _, condition := range []string{"Orphaned", "RemovalHeld"} {
		if said := w.condition("own/three", condition); said != "" {
			t.Errorf("the number of clusters is unknown, but own/three is judged: %s\n%s", said, got.out)
		}
	}
}
