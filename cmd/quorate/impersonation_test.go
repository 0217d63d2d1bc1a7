package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rendered returns the objects of an overlay of deploy. kustomization is the text of the overlay, in which %s stands
// for the path of deploy. settings is the text of quorate.yaml next to the overlay, if any.
func rendered(t *testing.T, kustomization string, settings ...string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.ReplaceAll(kustomization, "%s", deploy)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range settings {
		if err := os.WriteFile(filepath.Join(dir, "quorate.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return kustomize(t, dir)
}

// grantAll creates the rendered objects that grant rights, namespaces first.
func (w *tenants) grantAll(objects map[string]any) {
	w.Helper()
	client, opts := w.server.Client, metav1.CreateOptions{}
	for _, o := range objects {
		if namespace, ok := o.(*corev1.Namespace); ok {
			if _, err := client.CoreV1().Namespaces().Create(w.Context(), namespace, opts); err != nil {
				w.Fatal(err)
			}
		}
	}
	for name, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(w.Context(), o, opts)
		case *rbacv1.ClusterRole:
			_, err = client.RbacV1().ClusterRoles().Create(w.Context(), o, opts)
		case *rbacv1.ClusterRoleBinding:
			_, err = client.RbacV1().ClusterRoleBindings().Create(w.Context(), o, opts)
		case *rbacv1.Role:
			_, err = client.RbacV1().Roles(o.Namespace).Create(w.Context(), o, opts)
		case *rbacv1.RoleBinding:
			_, err = client.RbacV1().RoleBindings(o.Namespace).Create(w.Context(), o, opts)
		}
		if err != nil {
			w.Fatalf("%s: %v", name, err)
		}
	}
}

// as returns the source of a tenant, restricted to its namespace, with a user to impersonate.
func (w *tenants) as(tenant, user string) string {
	return fmt.Sprintf("%s,allow-namespace=%s,as=%s", w.repository(tenant), tenant, user)
}

func userOf(tenant string) string { return "quorate:tenant:" + tenant }

// tenantRights grants the run the rights that docs/how-to/tenants.md describes for these tenants.
func (w *tenants) tenantRights(tenants ...string) {
	w.Helper()
	var users []string
	for _, tenant := range tenants {
		users = append(users, strconv.Quote(userOf(tenant)))
	}
	w.grantAll(rendered(w.T, "resources: [%s/base]\ncomponents: [%s/tenants]\npatches:\n- target: {kind: ClusterRole, name: quorate-tenants}\n"+
		"  patch: |\n    - op: replace\n      path: /rules/0/resourceNames\n      value: ["+strings.Join(users, ", ")+"]\n"))
	for _, tenant := range tenants {
		w.grantAll(map[string]any{tenant: &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "quorate-tenant", Namespace: tenant},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quorate"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: userOf(tenant)}},
		}})
	}
}

// noPodHasRights fails if a pod in one of the namespaces could get Quorate's rights there, through an existing service
// account or one that could be created.
func (w *tenants) noPodHasRights(namespaces ...string) {
	w.Helper()
	for _, namespace := range namespaces {
		bindings, err := w.server.Client.RbacV1().RoleBindings(namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil || len(bindings.Items) == 0 {
			w.Fatalf("%v, %v", bindings, err)
		}
		for _, binding := range bindings.Items {
			for _, subject := range binding.Subjects {
				if subject.Kind != rbacv1.UserKind || strings.HasPrefix(subject.Name, "system:") {
					w.Errorf("%s: %+v", namespace, subject)
				}
			}
		}
	}
}

// TestRunImpersonatesTenantUsers checks that a run with the rights of deploy/tenants makes all requests in a tenant's
// namespace as that tenant, and cannot do anything as itself.
func TestRunImpersonatesTenantUsers(t *testing.T) {
	w := newTenants(t, "shop", "bank", "other")
	w.made("shop/one", "bank/one", "other/one")
	w.tenantRights("shop", "bank")
	w.noPodHasRights("shop", "bank")
	for _, tenant := range []string{"shop", "bank"} {
		w.push(tenant, tenant+"/one")
	}
	seen := w.throughAs("quorate-system", "quorate")
	both := []string{"--source", w.as("shop", userOf("shop")), "--source", w.as("bank", userOf("bank"))}
	for _, command := range []string{"plan", "run", "run --until-converged"} {
		if got := w.command(append(strings.Fields(command), both...)...); got.code != exitOK {
			t.Errorf("%s: %+v", command, got)
		}
	}
	seen.within(t, "shop", "bank")
	for _, r := range seen.requests() {
		in := namespaced.FindStringSubmatch(r.path)
		if in == nil && !strings.HasPrefix(r.as, "quorate:tenant:") || in != nil && r.as != userOf(in[1]) {
			t.Errorf("as a different user: %+v", r)
		}
	}
	for name, c := range map[string]struct {
		args         []string
		want, advice string
	}{
		"as itself":               {[]string{"--source", w.repository("shop"), "--allow-namespace", "shop"}, `User "system:serviceaccount:quorate-system:quorate" cannot list`, "bind the ClusterRole quorate of deploy/base/rbac.yaml to this user in the namespace shop"},
		"as itself, everywhere":   {[]string{"--source", w.repository("shop")}, `User "system:serviceaccount:quorate-system:quorate" cannot list`, "in all namespaces, or name the namespaces it may read"},
		"as the other tenant":     {[]string{"--source", w.as("shop", userOf("bank"))}, `User "quorate:tenant:bank" cannot list`, "create rolebinding quorate-tenant --namespace=shop --clusterrole=quorate --user=quorate:tenant:bank"},
		"as somebody else there":  {[]string{"--source", w.as("shop", "ann")}, `cannot impersonate resource "users"`, "use as=" + userOf("shop")},
		"as an administrator":     {[]string{"--source", w.as("shop", "admin") + ",as-group=system:masters"}, "cannot impersonate resource", "use as=" + userOf("shop")},
		"as a tenant of no right": {[]string{"--source", w.as("other", userOf("other"))}, `cannot impersonate resource "users"`, "add this name to the ClusterRole quorate-tenants"},
		"as nobody's placeholder": {[]string{"--source", w.as("shop", userOf("none"))}, `cannot impersonate resource "users"`, "use as=" + userOf("shop")},
		"as somebody, all of it":  {[]string{"--source", w.repository("shop"), "--allow-namespace", "shop", "--as", "ann"}, `cannot impersonate resource "users"`, "or omit --as"},
	} {
		w.push("other", "other/one")
		if got := w.run(c.args...); got.code != exitError || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, c.advice) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A tenant whose account has lost its rights does not affect the other tenant.
	if err := w.server.Client.RbacV1().RoleBindings("bank").Delete(t.Context(), "quorate-tenant", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := w.push("shop", "shop/one")
	for w.authorized(userOf("bank"), "bank") {
	}
	got := w.run(both...)
	if got.code != exitError || w.cluster("shop/one").Status.SourceRevision != "main@sha1:"+next {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{
		"error list namespace bank, for " + w.repository("bank") + ": list Leases: ",
		`in the namespace "bank"; the user in as= is not allowed to do this: run kubectl create rolebinding quorate-tenant --namespace=bank --clusterrole=quorate --user=quorate:tenant:bank`,
		"(docs/how-to/tenants.md)",
	} {
		if strings.Count(got.out, want) != 1 {
			t.Errorf("want %q once, got\n%s", want, got.out)
		}
	}
}

// TestAmbiguousImpersonationIsRejected checks that it must be unambiguous which user to impersonate for each cluster,
// because otherwise the run would act with its own rights.
func TestAmbiguousImpersonationIsRejected(t *testing.T) {
	w := &tenants{T: t, kubeconfig: "/nowhere"}
	for _, c := range []struct {
		name, want string
		sources    []string
	}{
		{"nobody", `as="": expected a user name`, []string{"./a,allow-namespace=a,as="}},
		{"blank", `as=" ": expected a user name`, []string{"./a,allow-namespace=a,as= "}},
		{"group alone", `as="": expected a user name`, []string{"./a,allow-namespace=a,as-group=team"}},
		{"group without a name", "as-group: expected a group name", []string{"./a,allow-namespace=a,as=ann,as-group="}},
		{"all namespaces", "as=ann: allow-namespace is required", []string{"./a,as=ann"}},
		{"beside one of all namespaces", "./b: allow-namespace is required", []string{"./a,allow-namespace=a,as=ann", "./b"}},
		{"one namespace of two", "may both declare clusters in the namespace b", []string{"./a,allow-namespace=a;b,as=ann", "./b,allow-namespace=b,as=bob"}},
		{"one namespace, in other groups", "may both declare clusters in the namespace a", []string{"./a,allow-namespace=a,as=ann", "./b,allow-namespace=a,as=ann,as-group=team"}},
		{"one namespace, one of them as the run", "may both declare clusters in the namespace a", []string{"./a,allow-namespace=a,as=ann", "./b,allow-namespace=a"}},
		{"an account of its namespace", "anyone who can create pods in the namespace a can run as this account", []string{"./a,allow-namespace=a;b,as=system:serviceaccount:a:quorate"}},
		{"an account of another tenant's", "anyone who can create pods in the namespace b can run as this account", []string{"./a,allow-namespace=a,as=system:serviceaccount:b:x", "./b,allow-namespace=b,as=ann"}},
		{"the custom resources", "the custom resources do not accept settings", []string{"cluster,allow-namespace=a,as=ann"}},
	} {
		for _, command := range []string{"run", "plan", "validate"} {
			args := []string{command}
			for _, source := range c.sources {
				args = append(args, "--source", source)
			}
			if command != "validate" {
				args = append(args, "--kubeconfig", w.kubeconfig)
			}
			if got := w.bare(args...); got.code != exitInvalid || !strings.Contains(got.err, c.want) {
				t.Errorf("%s, %s: %+v, want %q", c.name, command, got, c.want)
			}
		}
	}
}
