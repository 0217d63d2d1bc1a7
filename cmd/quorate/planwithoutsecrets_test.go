package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const running = "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: one, namespace: own}\nspec: {version: 3.6.16, replicas: 1}\n"

// founded creates a cluster with TLS that has all its objects except pods.
func (w *tenants) founded() {
	w.Helper()
	w.push("own", running)
	if got := w.run("--source", w.repository("own"), "--timeout", "3s"); got.code != exitNotConverged {
		w.Fatalf("%+v", got)
	}
	if _, err := w.server.Client.CoreV1().Secrets("own").Get(w.Context(), "one-ca", metav1.GetOptions{}); err != nil {
		w.Fatal(err)
	}
}

// asReader makes later commands use an account with the rights in deploy/plan-rbac.yaml.
func (w *tenants) asReader() *watcher {
	w.Helper()
	text, err := os.ReadFile("../../deploy/plan-rbac.yaml")
	if err != nil {
		w.Fatal(err)
	}
	objects := map[string]any{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var typed metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &typed); err != nil {
			w.Fatal(err)
		}
		object := newObject(w.T, typed.Kind)
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			w.Fatal(err)
		}
		objects[typed.Kind] = object
	}
	w.grantAll(objects)
	return w.throughAs("quorate-system", "quorate-plan")
}

// onlyReads fails if any request is not a read, or accesses a Secret other than the named Secrets.
func (s *watcher) onlyReads(t *testing.T, secrets ...string) {
	t.Helper()
	for _, r := range s.requests() {
		refused := r.status == http.StatusForbidden
		if r.method != http.MethodGet {
			t.Errorf("it does not only read: %+v", r)
		}
		path, _, _ := strings.Cut(r.path, "?")
		_, secret, is := strings.Cut(path, "/secrets/")
		switch {
		case is && !strings.HasSuffix(secret, "-quorate-tls"):
			t.Errorf("an unrelated Secret: %+v", r)
		case strings.Contains(r.path, "/secrets") && !refused && !slices.Contains(secrets, secret):
			t.Errorf("it had a Secret: %+v", r)
		case !strings.Contains(r.path, "/secrets") && refused:
			t.Errorf("refused: %+v", r)
		}
	}
}

// TestPlanAndStatusWorkWithoutSecrets checks that plan and status work without access to Secrets, report the missing
// access, and do not draw conclusions about objects that they could not read.
func TestPlanAndStatusWorkWithoutSecrets(t *testing.T) {
	w := newTenants(t, "own", "quorate-system")
	w.founded()
	admin := w.kubeconfig
	seen := w.asReader()
	plan := []string{"plan", "--source", w.repository("own"), "--etcd-access", "direct"}
	status := []string{"status", "-o", "wide", "--etcd-access", "direct"}
	const unseen = `warning its Secrets could not be read (get Secret own/one-quorate-tls: secrets "one-quorate-tls" is forbidden: User "system:serviceaccount:quorate-system:quorate-plan" cannot get`
	for _, command := range [][]string{plan, status} {
		got := w.command(command...)
		if got.code != exitOK || !strings.Contains(got.out, unseen) || !strings.Contains(got.out, "WaitForFormation") {
			t.Errorf("%q: %+v", command, got)
		}
	}
	// Readable objects are still compared.
	if err := w.server.Client.CoreV1().Services("own").Delete(t.Context(), "one-client", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.command(plan...); got.code != exitOK || !strings.Contains(got.out, "Service one-client: missing") {
		t.Errorf("%+v", got)
	}
	// Unreadable Secrets count neither as existing nor as missing.
	secrets := w.server.Client.CoreV1().Secrets("own")
	for _, name := range []string{"one-ca", "one-peer-tls", "one-quorate-tls"} {
		if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.command(append(plan, "-o", "state")...); got.code != exitOK || strings.Contains(got.out, "one-ca") || !strings.Contains(got.out, `"unseen"`) {
		t.Errorf("%+v", got)
	}
	// An unmanaged object with the name of an unreadable Secret is not detected. With the name of a readable Secret, it
	// is detected.
	w.allowSecret("one-quorate-tls")
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one-quorate-tls"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.command(plan...); got.code != exitBlocked || !strings.Contains(got.out, "Secret one-quorate-tls exists but was not created by Quorate") ||
		!strings.Contains(got.out, "only Secret one-quorate-tls could be read (list Secrets: ") {
		t.Errorf("%+v", got)
	}
	seen.onlyReads(t, "one-quorate-tls")
	// A run must be able to read everything. With the same rights, it cannot observe the cluster.
	if got := w.run("--source", w.repository("own")); got.code != exitError || !strings.Contains(got.out, "error observe "+seen.url+": list Secrets: ") {
		t.Errorf("%+v", got)
	}
	w.kubeconfig = admin
	if got := w.command(plan...); strings.Contains(got.out, "could not be read") {
		t.Errorf("%+v", got)
	}
}

// allowSecret grants the reading account access to one Secret, as in docs/how-to/plan-without-secrets.md.
func (w *tenants) allowSecret(name string) {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "quorate-plan"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}},
	}}
	if _, err := w.server.Client.RbacV1().Roles("own").Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "quorate-plan"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "quorate-plan"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "quorate-system", Name: "quorate-plan"}},
	}
	if _, err := w.server.Client.RbacV1().RoleBindings("own").Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}
