package scenarios

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// actAsTenant makes the run act as a tenant, as described in docs/how-to/tenants.md. The run then has no rights
// of its own and can impersonate only that tenant, and no service account in the tenant's namespace has the tenant's
// rights there. Finally, deploy/base is restored.
func (w *world) actAsTenant(url string) {
	w.t.Helper()
	user := "quorate:tenant:" + w.namespace
	w.applyOverlay(url, "tenants")
	w.kubectl("delete", "clusterrolebinding", "quorate")
	w.t.Cleanup(func() {
		w.kubectl("delete", "--ignore-not-found", "clusterrolebinding/quorate-tenants", "clusterrole/quorate-tenants")
	})
	w.kubectl("create", "rolebinding", "quorate-tenant", "--namespace="+w.namespace, "--clusterrole=quorate", "--user="+user)
	source := func(as string) string {
		return fmt.Sprintf("--source=%[1]s,branch=main,path=clusters,default-namespace=%[2]s,allow-namespace=%[2]s,as=%[3]s", url, w.namespace, as)
	}
	if said, ok := w.runJobWith("not-listed", source(user)); ok || !strings.Contains(said, "add this name to the ClusterRole quorate-tenants") {
		w.t.Errorf("a user that is not listed:\n%s", said)
	}
	w.kubectl("patch", "clusterrole", "quorate-tenants", "--type=json", `--patch=[{"op":"replace","path":"/rules/0/resourceNames","value":["`+user+`"]}]`)
	if said, ok := w.runJobWith("as-tenant", source(user)); !ok || !strings.Contains(said, `"rule":"Converged"`) {
		w.t.Errorf("as the tenant:\n%s", said)
	}
	for name, as := range map[string]string{"as-other": "quorate:tenant:other", "as-admin": "kubernetes-admin"} {
		if said, ok := w.runJobWith(name, source(as)); ok || !strings.Contains(said, "cannot impersonate") {
			w.t.Errorf("%s:\n%s", as, said)
		}
	}
	if said, ok := w.runJobWith("as-account", source("system:serviceaccount:"+w.namespace+":default")); ok || !strings.Contains(said, "can run as this account") {
		w.t.Errorf("as an account of the namespace:\n%s", said)
	}
	w.noAccountHasRights(user)
	w.kubectl("delete", "--namespace="+w.namespace, "rolebinding", "quorate-tenant")
	w.applyOverlay(url, "")
}

// noAccountHasRights checks with the API server that the user can read the Secrets of the namespace, and that
// the run's own account and any pod created in the namespace cannot.
func (w *world) noAccountHasRights(user string) {
	w.t.Helper()
	accounts := []string{"system:serviceaccount:" + systemNamespace + ":quorate"}
	for _, name := range []string{"default", "quorate", "quorate-tenant", w.namespace} {
		accounts = append(accounts, "system:serviceaccount:"+w.namespace+":"+name)
	}
	may := func(as string) string {
		said, _ := w.tryKubectl("auth", "can-i", "list", "secrets", "--namespace="+w.namespace, "--as="+as, "--as-group=system:authenticated",
			"--as-group=system:serviceaccounts", "--as-group=system:serviceaccounts:"+w.namespace)
		return strings.TrimSpace(said)
	}
	if said := may(user); said != "yes" {
		w.t.Errorf("%s may list Secrets: %s", user, said)
	}
	for _, account := range accounts {
		if said := may(account); !strings.HasPrefix(said, "no") {
			w.t.Errorf("%s may list Secrets: %s", account, said)
		}
	}
}

// runJobWith runs the CronJob's pod with these arguments instead of its configuration file, and returns its output and
// whether it succeeded.
func (w *world) runJobWith(name string, args ...string) (said string, succeeded bool) {
	w.t.Helper()
	cron, err := w.kube.BatchV1().CronJobs(systemNamespace).Get(w.ctx(), "quorate", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	job.Spec.BackoffLimit = new(int32)
	job.Spec.Template.Spec.Containers[0].Args = append([]string{"run", "--until-converged", "--timeout=2m", "--log-format=json", "--namespace=" + w.namespace}, args...)
	jobs := w.kube.BatchV1().Jobs(systemNamespace)
	if _, err := jobs.Create(w.ctx(), job, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "the Job "+name+" ends", func() error {
		if job, err = jobs.Get(w.ctx(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if job.Status.Succeeded+job.Status.Failed == 0 {
			return fmt.Errorf("%+v", job.Status)
		}
		return nil
	})
	return w.kubectl("--namespace", systemNamespace, "logs", "job/"+name), job.Status.Succeeded > 0
}
