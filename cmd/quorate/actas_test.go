package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rendered are the objects of an overlay of deploy, with a kustomization of that text in which %s
// is where deploy is.
func rendered(t *testing.T, kustomization string) map[string]any {
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
	return kustomize(t, dir)
}

// grantAll creates what has to do with rights of what is rendered, namespaces first.
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

// as is the source of a tenant, bound to its namespace and done as somebody.
func (w *tenants) as(tenant, user string) string {
	return fmt.Sprintf("%s,allow-namespace=%s,as=%s", w.repository(tenant), tenant, user)
}

func accountOf(tenant string) string {
	return "system:serviceaccount:" + tenant + ":quorate-tenant"
}

// A run with the rights of deploy/tenants acts in the namespace of each tenant as that tenant, in
// all that it asks, and can do nothing as itself.
func TestRunActsAsItsTenants(t *testing.T) {
	w := newTenants(t, "shop", "bank", "other")
	w.made("shop/one", "bank/one", "other/one")
	w.grantAll(rendered(t, "resources: [%s/base]\ncomponents: [%s/tenants]\n"))
	for _, tenant := range []string{"shop", "bank"} {
		w.grantAll(rendered(t, "namespace: "+tenant+"\nresources: [%s/tenants/tenant]\n"))
		w.push(tenant, tenant+"/one")
	}
	seen := w.throughAs("quorate-system", "quorate")
	both := []string{"--source", w.as("shop", accountOf("shop")), "--source", w.as("bank", accountOf("bank"))}
	for _, command := range []string{"plan", "run", "run --until-converged"} {
		if got := w.command(append(strings.Fields(command), both...)...); got.code != exitOK {
			t.Errorf("%s: %+v", command, got)
		}
	}
	seen.within(t, "shop", "bank")
	for _, r := range seen.requests() {
		in := namespaced.FindStringSubmatch(r.path)
		if in == nil && !strings.HasPrefix(r.as, "system:serviceaccount:") || in != nil && r.as != accountOf(in[1]) {
			t.Errorf("as somebody else: %+v", r)
		}
	}
	for name, c := range map[string]struct {
		args         []string
		want, advice string
	}{
		"as itself":               {[]string{"--source", w.repository("shop"), "--allow-namespace", "shop"}, `User "system:serviceaccount:quorate-system:quorate" cannot list`, "bind the ClusterRole quorate of deploy/base/rbac.yaml to this user in the namespace shop"},
		"as itself, everywhere":   {[]string{"--source", w.repository("shop")}, `User "system:serviceaccount:quorate-system:quorate" cannot list`, "in all namespaces, or name those that it may look at"},
		"as the other tenant":     {[]string{"--source", w.as("shop", accountOf("bank"))}, `User "system:serviceaccount:bank:quorate-tenant" cannot list`, "apply deploy/tenants/tenant in the namespace shop, whose RoleBinding"},
		"as somebody else there":  {[]string{"--source", w.as("shop", "system:serviceaccount:shop:default")}, `cannot impersonate resource "serviceaccounts"`, "apply deploy/tenants/tenant in the namespace shop, and say as=" + accountOf("shop")},
		"as an administrator":     {[]string{"--source", w.as("shop", "admin") + ",as-group=system:masters"}, "cannot impersonate resource", "and say as=" + accountOf("shop")},
		"as a tenant of no right": {[]string{"--source", w.as("other", accountOf("other"))}, `cannot impersonate resource "serviceaccounts"`, "apply deploy/tenants/tenant in the namespace other"},
		"as somebody, all of it":  {[]string{"--source", w.repository("shop"), "--allow-namespace", "shop", "--as", "ann"}, `cannot impersonate resource "users"`, "or leave --as out"},
	} {
		w.push("other", "other/one")
		if got := w.run(c.args...); got.code != exitError || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, c.advice) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// One tenant whose account is gone is no matter of the other.
	if err := w.server.Client.RbacV1().RoleBindings("bank").Delete(t.Context(), "quorate-tenant", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := w.push("shop", "shop/one")
	for w.authorized(accountOf("bank"), "bank") {
	}
	got := w.run(both...)
	if got.code != exitError || w.cluster("shop/one").Status.SourceRevision != "main@sha1:"+next {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{
		"error look at the namespace bank, for " + w.repository("bank") + ": list Leases: ",
		`in the namespace "bank"; the user that as= names has no such right: apply deploy/tenants/tenant in the namespace bank, whose RoleBinding quorate-tenant`,
		"(docs/how-to/tenants.md)",
	} {
		if strings.Count(got.out, want) != 1 {
			t.Errorf("want %q once, got\n%s", want, got.out)
		}
	}
}

// Whom to act as has to be told for each cluster without doubt, and as nobody the run would act
// with its own rights.
func TestWhomToActAs(t *testing.T) {
	w := &tenants{T: t, kubeconfig: "/nowhere"}
	for _, c := range []struct {
		name, want string
		sources    []string
	}{
		{"nobody", `as="": want the name of a user`, []string{"./a,allow-namespace=a,as="}},
		{"blank", `as=" ": want the name of a user`, []string{"./a,allow-namespace=a,as= "}},
		{"group alone", `as="": want the name of a user`, []string{"./a,allow-namespace=a,as-group=team"}},
		{"group without a name", "as-group: want the name of a group", []string{"./a,allow-namespace=a,as=ann,as-group="}},
		{"all namespaces", "as=ann: allow-namespace is required", []string{"./a,as=ann"}},
		{"beside one of all namespaces", "./b: allow-namespace is required", []string{"./a,allow-namespace=a,as=ann", "./b"}},
		{"one namespace of two", "may both declare clusters in the namespace b", []string{"./a,allow-namespace=a;b,as=ann", "./b,allow-namespace=b,as=bob"}},
		{"one namespace, in other groups", "may both declare clusters in the namespace a", []string{"./a,allow-namespace=a,as=ann", "./b,allow-namespace=a,as=ann,as-group=team"}},
		{"one namespace, one of them as the run", "may both declare clusters in the namespace a", []string{"./a,allow-namespace=a,as=ann", "./b,allow-namespace=a"}},
		{"the custom resources", "the custom resources take no settings", []string{"cluster,allow-namespace=a,as=ann"}},
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
