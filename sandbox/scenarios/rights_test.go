package scenarios

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// unseen lists the rights in the ClusterRole whose use is not visible in the requests, with the reasons.
var unseen = map[string]string{
	"update etcdclusters/finalizers": "asked for by an admission plugin that is not on by default",
	"list events":                    "only while a pod is missing",
	"create pods/portforward":        "SPDY, where WebSockets do not get through",
	// An apply is a patch. If the object does not exist, the API server also requires the right to create it.
	"create etcdclusters": "apply", "create services": "apply", "create configmaps": "apply", "create secrets": "apply",
	"create statefulsets": "apply", "create poddisruptionbudgets": "apply", "create networkpolicies": "apply",
	"create cronjobs": "apply", "create jobs": "apply", "create persistentvolumeclaims": "apply",
}

// TestRights makes quorate bootstrap, watch, repair, change and delete a cluster from outside the Kubernetes cluster,
// and start a restore, with only the rights in deploy/base. It compares the requests to the API server with the
// ClusterRole: no request may be rejected, and every right must be used.
func TestRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	role := deployedRole(t)
	user := w.namespace + "-user"
	w.grant(role, user)
	proxy := w.newProxyAs(user)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one)})
	w.convergeFrom(through(proxy))
	for _, d := range []disturbance{{"service deleted", services, "a-client", ""}, {"budget changed", budgets, "a", `{"spec":{"minAvailable":0}}`}} {
		w.disturb(d)
		w.convergeFrom(through(proxy))
	}
	backups := "backup: {schedule: '@weekly', to: {volume: {claimName: none}}}"
	for _, spec := range [][]string{{one, otherOptions}, {"replicas: 2", otherOptions, "networkPolicy: {clients: [{pods: {app: web}}]}", backups}, {one, otherOptions}, {one, otherOptions, "lifecycle: Deleted"}} {
		w.declare(modern, spec...)
		w.convergeFrom(through(proxy), "--allow-backup-destination=**", "--backup-image=quorate.dev/quorate:none")
	}
	w.runFrom(through(proxy), "status").requireCode(t, exitDone)
	w.restoreInVain(proxy)

	used := map[string]bool{}
	for _, r := range proxy.Requests() {
		if r.Status == 403 {
			t.Errorf("refused: %s", r)
		}
		if r.Resource != "" {
			used[r.Verb+" "+r.Resource] = true
		}
	}
	for _, right := range slices.Sorted(maps.Keys(rightsOf(role))) {
		if !used[right] && unseen[right] == "" {
			t.Errorf("the ClusterRole allows %q, which was never asked for", right)
		}
	}
}

// restoreInVain declares a cluster that is restored from one backup, and then from a different backup. The claim of the
// first member is created, and a Job to fill it is started. That Job waits for a volume that does not exist, and is
// replaced by the Job for the second backup.
func (w *world) restoreInVain(p *faultproxy.Proxy) {
	w.t.Helper()
	for _, backup := range []string{"20261121t180000z", "20261122t180000z"} {
		w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, otherOptions, "lifecycle: Deleted"), "b.yaml": declaration("b", modern, one, "restore: {from: {volume: {claimName: none}}, backup: "+backup+"}")})
		waiting := w.runFrom(through(p), "run", "--until-converged", "--timeout=20s", "--allow-backup-destination=**",
			"--backup-image=quorate.dev/quorate:none").requireCode(w.t, exitNotConverged)
		if d := waiting.cluster("b").Decision; d.Rule != "Restore" || !strings.Contains(d.Message, backup) {
			w.t.Errorf("%s", waiting)
		}
	}
}

// deployedRole reads the ClusterRole in deploy/base.
func deployedRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), "deploy", "base", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(first), role); err != nil {
		t.Fatal(err)
	}
	return role
}

func rightsOf(role *rbacv1.ClusterRole) map[string]bool {
	rights := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights[verb+" "+resource] = true
			}
		}
	}
	return rights
}

// grant grants a user the role's rights in all namespaces, as deploy/base does.
func (w *world) grant(role *rbacv1.ClusterRole, user string) {
	w.t.Helper()
	name := metav1.ObjectMeta{Name: user}
	role = role.DeepCopy()
	role.ObjectMeta = name
	rbac := w.kube.RbacV1()
	if _, err := rbac.ClusterRoles().Create(w.ctx(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(w.ctx(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = rbac.ClusterRoleBindings().Delete(w.ctx(), user, metav1.DeleteOptions{})
		_ = rbac.ClusterRoles().Delete(w.ctx(), user, metav1.DeleteOptions{})
	})
}

// grantHere grants a user the role's rights in the test's namespace only.
func (w *world) grantHere(role *rbacv1.ClusterRole, user string) {
	w.t.Helper()
	name, rbac := metav1.ObjectMeta{Name: strings.ReplaceAll(user, ":", "-")}, w.kube.RbacV1()
	if _, err := rbac.Roles(w.namespace).Create(w.ctx(), &rbacv1.Role{ObjectMeta: name, Rules: role.Rules}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := rbac.RoleBindings(w.namespace).Create(w.ctx(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
