package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/deploy"
)

// output returns the output of a command, which must succeed.
func (w *tenants) output(args ...string) string {
	w.Helper()
	got := w.command(args...)
	if got.code != exitOK {
		w.Fatalf("%q: exit code %d: %s", args, got.code, got.err)
	}
	return got.out
}

// TestInstallAndUninstallLeaveClustersUnchanged installs one mode after the other, and then uninstalls Quorate. It
// checks that the objects of each mode are created and deleted, and that clusters are left unchanged.
func TestInstallAndUninstallLeaveClustersUnchanged(t *testing.T) {
	w := newTenants(t, "own")
	w.made("own/one")
	before := w.cluster("own/one")
	for mode, workload := range map[string]string{
		"cronjob": "CronJob quorate-system/quorate", "loop": "Deployment quorate-system/quorate", "indexed-job": "CronJob quorate-system/quorate",
	} {
		args := []string{"install", "--mode", mode, "--image", "registry.example.com/quorate:1", "--source", "https://git.example.com/fleet.git"}
		if said := w.output(append(args, "--path", mode)...); !strings.Contains(said, "applied "+workload+"\n") {
			t.Errorf("%s prints\n%s", mode, said)
		}
		if said := w.output(append(args, "--path", mode)...); strings.Contains(said, "deleted ") {
			t.Errorf("%s again prints\n%s", mode, said)
		}
		there := strings.Split(strings.TrimSpace(w.output("uninstall", "--print")), "\n")
		if jobs := slices.DeleteFunc(slices.Clone(there), func(o string) bool { return !strings.HasSuffix(o, "quorate-system/quorate") }); len(jobs) != 2 ||
			!slices.Contains(jobs, workload) || !slices.Contains(jobs, "ServiceAccount quorate-system/quorate") {
			t.Errorf("in mode %s, got %q", mode, there)
		}
	}
	if said := w.output("uninstall"); !strings.HasPrefix(said, "deleted CronJob quorate-system/quorate\n") && !strings.HasPrefix(said, "deleted Deployment ") || strings.Count(said, "ConfigMap quorate-system/quorate-config-") != 3 || !strings.Contains(said, "deleted ClusterRole quorate\n") {
		t.Errorf("uninstall prints\n%s", said)
	}
	if there := w.output("uninstall", "--print") + w.output("uninstall"); there != "" {
		t.Errorf("it leaves\n%s", there)
	}
	if after := w.cluster("own/one"); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a cluster has changed:\n%+v\n%+v", before, after)
	}
	if _, err := w.server.Client.CoreV1().Namespaces().Get(context.Background(), "quorate-system", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// loop returns the arguments that install a loop, with the given flags for its runs.
func loop(run ...string) []string {
	return append([]string{"install", "--mode", "loop", "--image", "registry.example.com/quorate:1", "--source",
		"https://git.example.com/fleet.git", "--"}, run...)
}

// TestRunArgsAreInManifests checks that install assumes the arguments that the manifests have.
func TestRunArgsAreInManifests(t *testing.T) {
	for _, mode := range deploy.Modes() {
		objects, err := deploy.Render(deploy.Options{Mode: mode, Image: "x", Shards: 2, Config: "x"})
		want := append([]string{"--config=/etc/quorate/quorate.yaml"}, runArgs(mode)...)
		got := regexp.MustCompile(`(?m)^ *- (--[a-z].*)$`).FindAllStringSubmatch(strings.Join(objects, ""), -1)
		var args []string
		for _, match := range got {
			args = append(args, match[1])
		}
		if err != nil || !slices.Equal(args, want) {
			t.Errorf("%s: %q, %v, want %q", mode, args, err, want)
		}
	}
}

// install runs an install command line.
func (w *tenants) install(args []string) ran {
	w.Helper()
	return w.bare(append([]string{args[0], "--kubeconfig", w.kubeconfig}, args[1:]...)...)
}

// TestInstallReportsRemovedSettingsAndWidenedRights checks that reinstalling reports which settings runs lose, without
// the values, and which rights they gain.
func TestInstallReportsRemovedSettingsAndWidenedRights(t *testing.T) {
	w := newTenants(t, "own")
	file := filepath.Join(t.TempDir(), "quorate.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := []string{"install", "--mode", "loop", "--image", "registry.example.com/quorate:1", "--config", file, "--", "--approve", "never-restart"}
	write("limits: {deletions: 3}\nlog: {format: json}\nsources:\n- {location: https://git.example.com/fleet.git, verifyKeys: /k3ys}\n")
	if got := w.install(with); got.code != exitOK || strings.Contains(got.out, "no longer have") {
		t.Fatalf("%+v", got)
	}
	write("limits: {deletions: 4}\nlog: {format: json}\nsources:\n- {location: https://git.example.com/fleet.git}\n")
	if got := w.install(with[:7]); got.code != exitOK || !strings.HasSuffix(got.out, "\nruns no longer have these settings: --approve, sourceDefaults.verifyKeys\n") || strings.Contains(got.out, "k3ys") {
		t.Errorf("%+v", got)
	}
	cronjob := loop()
	cronjob[2] = "cronjob"
	if got := w.install(cronjob); got.code != exitOK || !strings.HasSuffix(got.out, "\nruns no longer have these settings: limits.deletions\n") {
		t.Errorf("in another mode: %+v", got)
	}
	two := "sources:\n- {location: https://git.example.com/a.git, allowNamespaces: [a], policy: {labels: []}}\n" +
		"- {location: https://git.example.com/b.git"
	write(two + ", allowNamespaces: [b], policy: {labels: []}}\n")
	w.install(with[:7])
	write(two + "}\n")
	if got := w.install(with[:7]); !strings.HasSuffix(got.out, "\nruns no longer have these settings: allowNamespaces of "+
		"https://git.example.com/b.git, policy.labels of https://git.example.com/b.git\n") {
		t.Errorf("one of two sources: %+v", got)
	}
	w.install(cronjob)
	// An overlay restricts runs to some namespaces by omitting the binding for all namespaces.
	const widened = "the new ClusterRoleBinding gives runs their rights in all namespaces"
	if got := w.install(cronjob); got.code != exitOK || strings.Contains(got.out, widened) {
		t.Errorf("%+v", got)
	}
	if err := w.server.Client.RbacV1().ClusterRoleBindings().Delete(t.Context(), "quorate", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.install(cronjob); got.code != exitOK || !strings.Contains(got.out, widened) {
		t.Errorf("%+v", got)
	}
}

// TestInstallAndKubectlApplyReplaceEachOther checks that an overlay and an installation can replace each other without
// leaving shards or credentials behind. "kubectl apply" uses the annotation that it stores to determine what to
// remove.
func TestInstallAndKubectlApplyReplaceEachOther(t *testing.T) {
	w := newTenants(t, "own")
	jobs := w.server.Client.BatchV1().CronJobs("quorate-system")
	install := func(mode string) batchv1.JobSpec {
		t.Helper()
		args := loop()
		args[2] = mode
		if got := w.install(args); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		job, err := jobs.Get(t.Context(), "quorate", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last, want := &batchv1.CronJob{}, w.output("install", "--mode", mode, "--image", args[4], "--source", args[6], "--print")
		if err := json.Unmarshal([]byte(job.Annotations[corev1.LastAppliedConfigAnnotation]), last); err != nil {
			t.Fatalf("what kubectl finds: %v", err)
		}
		for _, text := range strings.Split(want, "---\n") {
			printed := &batchv1.CronJob{}
			if err := yaml.Unmarshal([]byte(text), printed); err == nil && printed.Kind == "CronJob" && !reflect.DeepEqual(last, printed) {
				t.Errorf("kubectl treats this as the applied object\n%+v\nand it was\n%+v", last, printed)
			}
		}
		return job.Spec.JobTemplate.Spec
	}
	const with = "cronjob"
	plain := install(with)
	if err := jobs.Delete(t.Context(), "quorate", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	overlay := withComponent(t, "base", "indexed-job")["CronJob quorate"].(*batchv1.CronJob)
	pod := &overlay.Spec.JobTemplate.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "keys", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "keys", MountPath: "/keys"})
	if _, err := jobs.Create(t.Context(), overlay, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	if got := install(with); !reflect.DeepEqual(got, plain) {
		t.Errorf("over an overlay, got\n%+v\nand otherwise\n%+v", got, plain)
	}
	if sharded := install("indexed-job"); sharded.Completions == nil {
		t.Errorf("no shards: %+v", sharded)
	}
	if got := install(with); !reflect.DeepEqual(got, plain) {
		t.Errorf("over another mode, got\n%+v\nand otherwise\n%+v", got, plain)
	}
}

// writer calls a function with all text that is written to it.
type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// TestUninstallWaitsForPods checks that pods that are being stopped keep their rights until they end, so that their
// work is not interrupted.
func TestUninstallWaitsForPods(t *testing.T) {
	w := newTenants(t, "own")
	if got := w.install(loop()); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	kubernetes := w.server.Client
	deployment, err := kubernetes.AppsV1().Deployments("quorate-system").Get(t.Context(), "quorate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template := deployment.Spec.Template // the namespace admits such a pod, because it meets the restricted policy
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "under-way", Labels: template.Labels}, Spec: template.Spec}
	if _, err := kubernetes.CoreV1().Pods("quorate-system").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waited := false
	code := execute(t.Context(), []string{"uninstall", "--kubeconfig", w.kubeconfig}, streams{out: io.Discard, err: writer(func(said string) {
		if !strings.HasPrefix(said, "waiting for pods to finish: 1\n") {
			t.Errorf("got %q", said)
			return
		}
		waited = true
		if _, err := kubernetes.RbacV1().ClusterRoleBindings().Get(t.Context(), "quorate", metav1.GetOptions{}); err != nil {
			t.Errorf("a pod is under way: %v", err)
		}
		if _, err := kubernetes.AppsV1().Deployments("quorate-system").Get(t.Context(), "quorate", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it waits for recreated pods: %v", err)
		}
		if err := kubernetes.CoreV1().Pods("quorate-system").Delete(t.Context(), "under-way", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})})
	if code != exitOK || !waited {
		t.Errorf("exit code %d; it has waited: %v", code, waited)
	}
	if left := w.output("uninstall", "--print"); left != "" {
		t.Errorf("it leaves\n%s", left)
	}
}

// TestInstallKeepsObjectsOfOtherOwners checks that objects that belong to a Helm release, or to a Quorate in another
// namespace, are neither taken over nor deleted.
func TestInstallKeepsObjectsOfOtherOwners(t *testing.T) {
	w := newTenants(t, "own", "etcd-ops", "quorate-system")
	roles, bindings := w.server.Client.RbacV1().ClusterRoles(), w.server.Client.RbacV1().ClusterRoleBindings()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quorate"}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quorate"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "quorate", Namespace: "etcd-ops"}}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "quorate", Annotations: map[string]string{
		"meta.helm.sh/release-name": "etcd", "meta.helm.sh/release-namespace": "quorate-system"}}}
	_, err := roles.Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		binding, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err == nil {
		account, err = w.server.Client.CoreV1().ServiceAccounts("quorate-system").Create(t.Context(), account, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	got := w.install(loop())
	for _, want := range []string{"nothing was applied: ", `ServiceAccount quorate-system/quorate is owned by Helm release "etcd" in namespace "quorate-system"`,
		"ClusterRoleBinding quorate would be changed, but it is used by ServiceAccount etcd-ops/quorate"} {
		if got.code != exitBlocked || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("want %q of %+v", want, got)
		}
	}
	if got := w.command("uninstall"); got.code != exitOK || got.out != "" || strings.Count(got.err, " is kept: it is ") != 3 || !strings.Contains(got.err, "ClusterRole quorate is kept: it is used by ClusterRoleBinding quorate (ServiceAccount etcd-ops/quorate)") {
		t.Errorf("uninstall: %+v", got)
	}
	_, err = roles.Get(t.Context(), "quorate", metav1.GetOptions{})
	still, otherErr := bindings.Get(t.Context(), "quorate", metav1.GetOptions{})
	if err != nil || otherErr != nil || still.ResourceVersion != binding.ResourceVersion {
		t.Errorf("%v, %v: the binding is %+v", err, otherErr, still)
	}
	if still, err := w.server.Client.CoreV1().ServiceAccounts("quorate-system").Get(t.Context(), "quorate", metav1.GetOptions{}); err != nil || still.ResourceVersion != account.ResourceVersion {
		t.Errorf("%v: the account is %+v", err, still)
	}
	w.output("install") // the CustomResourceDefinition is shared
}

// eventually waits until check succeeds.
func (w *tenants) eventually(what string, check func() error) {
	w.Helper()
	end := time.Now().Add(time.Minute)
	for err := check(); err != nil; err = check() {
		if time.Now().After(end) {
			w.Fatalf("not within a minute: %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stored is a cluster that has only fields from the earlier CustomResourceDefinition.
const stored = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: a, namespace: own, labels: {app.kubernetes.io/managed-by: quorate}}
spec:
  version: 3.6.16
  replicas: 5
  suspend: true
  storage: {size: 8Gi, storageClassName: fast, retention: Delete}
  etcd: {quota: 4Gi, maxRequestBytes: 2Mi, snapshotCount: 5000, autoCompaction: {mode: Periodic, retention: 2h}, options: {max-wals: "7"}}
  image: {repository: registry.example.com/etcd, pullSecrets: [{name: pull}]}
  networkPolicy: {clients: [{namespaces: {team: shop}, pods: {app: web}}], metrics: [{cidr: 10.0.0.0/8}]}
  pod:
    labels: {team: shop}
    priorityClassName: high
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 1Gi}}
    tolerations: [{key: etcd, operator: Exists, effect: NoSchedule}]
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
status:
  clusterID: 6f776e2f61
  observedGeneration: 1
  rule: Converged
  voters: 5/5
  members:
  - {name: a-0, id: "1f", role: Leader, health: Healthy, version: 3.6.16, dbSize: 8000, strandedSince: "2026-11-20T10:00:00Z"}
  waiting:
  - {rule: ReplaceMember, for: a-1, seen: "2026-11-20T10:00:00Z", since: "2026-11-20T09:00:00Z"}
  conditions:
  - {type: Ready, status: "True", reason: Converged, message: well, lastTransitionTime: "2026-11-20T10:00:00Z"}
`

// TestCRDUpgradeKeepsStoredObjects checks that the CustomResourceDefinition is upgraded in place. Objects stored with
// an earlier definition are kept unchanged, and can be read and written.
func TestCRDUpgradeKeepsStoredObjects(t *testing.T) {
	server := kubetest.Start(t) // its own, because the API server may use a replaced definition for some time
	if err := installCRD(server); err != nil {
		t.Fatal(err)
	}
	w := newTenantsOn(t, server, "own")
	earlier, err := os.ReadFile("../../clusters/v1alpha1/crd/testdata/earlier.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.InstallCRD(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	clusters := w.server.Objects.Resource(v1alpha1.GroupVersion.WithResource("etcdclusters")).Namespace("own")
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(stored), &object.Object); err != nil {
		t.Fatal(err)
	}
	written := object.DeepCopy()
	w.eventually("the API server goes by the earlier definition", func() error {
		refused := written.DeepCopy()
		refused.Object["spec"].(map[string]any)["backup"] = map[string]any{}
		_, err := clusters.Create(t.Context(), refused, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
		if err == nil || !strings.Contains(err.Error(), `unknown field "spec.backup"`) {
			return fmt.Errorf("spec.backup is not refused: %w", cmp.Or(err, errors.New("it is taken")))
		}
		return nil
	})
	if written, err = clusters.Create(t.Context(), written, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		t.Fatal(err)
	}
	written.Object["status"] = object.Object["status"]
	if written, err = clusters.UpdateStatus(t.Context(), written, metav1.UpdateOptions{FieldValidation: "Strict"}); err != nil {
		t.Fatal(err)
	}

	w.output("install")
	w.eventually("the API server goes by the definition of today", func() error {
		backup := written.DeepCopy()
		backup.Object["spec"].(map[string]any)["backup"] = map[string]any{
			"schedule": "0 * * * *", "to": map[string]any{"volume": map[string]any{"claimName": "backups"}},
			"retention": map[string]any{"last": int64(3)},
		}
		_, err := clusters.Update(t.Context(), backup, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
		return err
	})
	read, err := clusters.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read.Object, written.Object) {
		t.Errorf("stored was\n%v\nand is\n%v", written.Object, read.Object)
	}
	again, err := clusters.Update(t.Context(), read, metav1.UpdateOptions{FieldValidation: "Strict"})
	if err != nil || again.GetResourceVersion() != read.GetResourceVersion() {
		t.Errorf("written as it is: %v, %v", again, err)
	}
	if said := w.output("status", "a", "--namespace", "own"); !strings.Contains(said, "Ready=True") || !strings.Contains(said, "Suspended") {
		t.Errorf("its status is\n%s", said)
	}
}
