package scenarios

import (
	"context"
	"crypto/x509"
	"maps"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testCarriedOver restores certificates as they were before Quorate had its own, when applications used etcd's root
// user. It checks that Quorate and applications get separate certificates, and that no pods are restarted. With
// authentication enabled, applications keep the root user until an administrator deletes their Secret.
func testCarriedOver(t *testing.T, w *world) {
	id, pods := w.requireOneCluster("a", 3), w.podUIDs("a")
	application := w.member("a", 0)
	application.put("app/carried", "over")

	w.asBefore()
	w.converge().requireRule(t, "a", "Converged")
	w.requireUser("a-client-tls", "a-client")
	w.requireUser("a-quorate-tls", "root")
	if got := application.get("app/carried"); got != "over" {
		t.Errorf("an application reads %q", got)
	}

	w.enableAuth()
	w.asBefore()
	r := w.converge().requireRule(t, "a", "Converged")
	w.requireUser("a-client-tls", "root")
	if warnings := strings.Join(r.cluster("a").Warnings, ""); !strings.Contains(warnings, "Grant user a-client the permissions that they need") {
		t.Errorf("warnings: %q", warnings)
	}
	if err := w.kube.CoreV1().Secrets(w.namespace).Delete(w.ctx(), "a-client-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r = w.converge().requireRule(t, "a", "Converged")
	w.requireUser("a-client-tls", "a-client")
	if warnings := r.cluster("a").Warnings; len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	application = w.member("a", 1)
	application.put("app/carried", "on")
	ctx, cancel := application.ctx()
	defer cancel()
	if _, err := application.Put(ctx, "other", "x"); err == nil {
		t.Error("an application has more rights than it was given")
	}
	if _, err := application.MemberRemove(ctx, 1); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("an application may remove members: %v", err)
	}
	w.auth(func(ctx context.Context, c clientv3.Auth) error { _, err := c.AuthDisable(ctx); return err })
	w.requireQuiet("a")
	if now := w.podUIDs("a"); !maps.Equal(pods, now) || w.requireOneCluster("a", 3) != id {
		t.Errorf("pods were %v and are %v", pods, now)
	}
}

// asBefore replaces the certificates in the Secrets with certificates like those that were issued before Quorate had
// its own.
func (w *world) asBefore() {
	w.t.Helper()
	ca := w.secretData("a-ca")
	for name, change := range map[string]func(*x509.Certificate){
		"a-client-tls": func(c *x509.Certificate) { c.RawSubject, c.Subject.CommonName, c.IPAddresses = nil, "root", nil },
		"a-peer-tls":   func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) },
	} {
		data := maps.Clone(w.secretData(name))
		data["tls.crt"] = signAgain(w.t, ca, data["tls.crt"], change)
		w.putSecret(name, data)
	}
	if err := w.kube.CoreV1().Secrets(w.namespace).Delete(w.ctx(), "a-quorate-tls", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) requireUser(secret, want string) {
	w.t.Helper()
	if got := parsed(w.t, w.secretData(secret)["tls.crt"]).Subject.CommonName; got != want {
		w.t.Errorf("the certificate in Secret %s is for %s, want %s", secret, got, want)
	}
}

// enableAuth enables authentication in cluster a. An application user has full access to keys with the prefix app/.
func (w *world) enableAuth() {
	w.t.Helper()
	w.enableAuthOf("a", "a-quorate-tls")
}

// enableAuthOf enables authentication in any cluster, like enableAuth. The Secret contains a certificate for the user
// root.
func (w *world) enableAuthOf(cluster, secret string) {
	w.t.Helper()
	nobody := &clientv3.UserAddOptions{NoPassword: true}
	for _, step := range []func(context.Context, clientv3.Auth) error{
		func(ctx context.Context, c clientv3.Auth) error {
			_, err := c.UserAddWithOptions(ctx, "root", "", nobody)
			return err
		},
		func(ctx context.Context, c clientv3.Auth) error { _, err := c.RoleAdd(ctx, "root"); return err },
		func(ctx context.Context, c clientv3.Auth) error {
			_, err := c.UserGrantRole(ctx, "root", "root")
			return err
		},
		func(ctx context.Context, c clientv3.Auth) error {
			_, err := c.UserAddWithOptions(ctx, "a-client", "", nobody)
			return err
		},
		func(ctx context.Context, c clientv3.Auth) error { _, err := c.RoleAdd(ctx, "app"); return err },
		func(ctx context.Context, c clientv3.Auth) error {
			_, err := c.RoleGrantPermission(ctx, "app", "app/", clientv3.GetPrefixRangeEnd("app/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func(ctx context.Context, c clientv3.Auth) error {
			_, err := c.UserGrantRole(ctx, "a-client", "app")
			return err
		},
		func(ctx context.Context, c clientv3.Auth) error { _, err := c.AuthEnable(ctx); return err },
	} {
		w.authAs(secret, cluster, step)
	}
}

// auth changes users and roles in cluster a as etcd's root user.
func (w *world) auth(change func(context.Context, clientv3.Auth) error) {
	w.t.Helper()
	w.authAs("a-quorate-tls", "a", change)
}

func (w *world) authAs(secret, cluster string, change func(context.Context, clientv3.Auth) error) {
	w.t.Helper()
	m := w.memberAs(secret, cluster, 0)
	ctx, cancel := m.ctx()
	defer cancel()
	if err := change(ctx, m.Client); err != nil {
		w.t.Fatal(err)
	}
}
