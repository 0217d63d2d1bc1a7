package scenarios

import (
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reader is the account in deploy/plan-rbac.yaml.
const reader = "quorate-plan"

// readInside runs plan and status in a pod with the rights in deploy/plan-rbac.yaml, first without access to any
// Secret, and then with access to Secret a-quorate-tls. Neither command may write anything.
func (w *world) readInside() {
	w.t.Helper()
	file := filepath.Join(root(), "deploy", "plan-rbac.yaml")
	w.kubectl("apply", "--filename", file)
	w.t.Cleanup(func() { w.kubectl("delete", "--ignore-not-found", "clusterrolebinding/"+reader, "clusterrole/"+reader) })
	before := w.snapshot()
	for _, command := range []string{"plan", "status"} {
		said := w.runJobAs("without-secrets-"+command, command)
		if !strings.Contains(said, "its Secrets could not be read (") || !strings.Contains(said, "etcd was not contacted, because this run may not read Secret a-quorate-tls") {
			w.t.Errorf("%s does not report what it has not looked at:\n%s", command, said)
		}
	}
	w.grantHere(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a-quorate-tls"}, Verbs: []string{"get"}},
	}}, "system:serviceaccount:"+systemNamespace+":"+reader)
	for command, want := range map[string]string{"plan": "a  Done   Converged", "status": "Healthy"} {
		said := w.runJobAs("with-one-secret-"+command, command)
		if !strings.Contains(said, "only Secret a-quorate-tls could be read (") || !strings.Contains(said, want) {
			w.t.Errorf("%s does not ask etcd with the Secret that it may read:\n%s", command, said)
		}
	}
	if changed := difference(before, w.snapshot()); changed != "" {
		w.t.Errorf("what only reads has changed %s", changed)
	}
}

// runJobAs runs a command in a pod like the CronJob's, but with the reader's rights, and returns its output.
func (w *world) runJobAs(name, command string) string {
	w.t.Helper()
	cron, err := w.kube.BatchV1().CronJobs(systemNamespace).Get(w.ctx(), "quorate", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	pod := &job.Spec.Template.Spec
	pod.ServiceAccountName = reader
	args := []string{command}
	if command == "status" {
		args = append(args, "--output=wide")
	}
	for _, arg := range pod.Containers[0].Args[1:] {
		ofRun := slices.ContainsFunc([]string{"--until-converged", "--timeout"}, func(flag string) bool { return strings.HasPrefix(arg, flag) })
		if ofSource := !strings.HasPrefix(arg, "--namespace") && !strings.HasPrefix(arg, "--log"); !ofRun && (command == "plan" || !ofSource) {
			args = append(args, arg)
		}
	}
	pod.Containers[0].Args = args
	if _, err := w.kube.BatchV1().Jobs(systemNamespace).Create(w.ctx(), job, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return w.outcomeOf(name)
}
