package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/reconcile"
)

// kustomize renders an overlay as "kubectl apply -k" does, and strictly decodes each object. The result is keyed by
// kind and name.
func kustomize(t *testing.T, dir string) map[string]any {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for _, r := range rendered.Resources() {
		object := newObject(t, r.GetKind())
		if err := yaml.UnmarshalStrict([]byte(r.MustYaml()), object); err != nil {
			t.Errorf("%s %s: %v", r.GetKind(), r.GetName(), err)
		}
		objects[r.GetKind()+" "+r.GetName()] = object
	}
	return objects
}

func newObject(t *testing.T, kind string) any {
	t.Helper()
	switch kind {
	case "CustomResourceDefinition":
		return &apiextensionsv1.CustomResourceDefinition{}
	case "Namespace":
		return &corev1.Namespace{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "Role":
		return &rbacv1.Role{}
	case "RoleBinding":
		return &rbacv1.RoleBinding{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "CronJob":
		return &batchv1.CronJob{}
	case "Deployment":
		return &appsv1.Deployment{}
	}
	t.Fatalf("deploy/ has a %s, which no test knows", kind)
	return nil
}

// TestDeployBaseIsValid checks that the manifests are valid, and that this binary accepts their command line.
func TestDeployBaseIsValid(t *testing.T) {
	objects := kustomize(t, "../../deploy/base")
	if len(objects) != 7 {
		t.Errorf("deploy/base has %d objects, want 7", len(objects))
	}
	args := container(t, objects).Args
	requireUnderstood(t, args)
	text, err := os.ReadFile("../../deploy/base/quorate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run := &runFlags{}
	newRunOf(run, streams{})
	if err := errors.Join(run.config.applyText("quorate.yaml", text, os.LookupEnv, &run.source), run.checkSettings()); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(text), "credentials") {
		t.Error("deploy/base reads credentials, which only deploy/private mounts")
	}
}

// TestDeployCRDAndNamespaceAreNotPruned checks that Flux and Argo CD do not prune objects in deploy whose deletion
// would delete clusters. They may prune other objects that are removed from git.
func TestDeployCRDAndNamespaceAreNotPruned(t *testing.T) {
	all := kustomize(t, "../../deploy/base")
	for _, name := range []string{"CustomResourceDefinition etcdclusters.etcd.quorate.dev", "Namespace quorate-system"} {
		object, is := all[name].(metav1.Object)
		if !is {
			t.Fatalf("deploy/base has no %s", name)
		}
		got := object.GetAnnotations()
		if got["kustomize.toolkit.fluxcd.io/prune"] != "disabled" || got["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" {
			t.Errorf("%s has %v", name, got)
		}
	}
}

// TestDeployLoopMatchesCronJob checks that the loop has the same rights, source, limits and image as the CronJob, so
// that only the schedule differs, and that the loop answers the probes.
func TestDeployLoopMatchesCronJob(t *testing.T) {
	base, all := kustomize(t, "../../deploy/base"), kustomize(t, "../../deploy/loop")
	deployment, _ := all["Deployment quorate"].(*appsv1.Deployment)
	if deployment == nil || len(all) != len(base) || all["CronJob quorate"] != nil {
		t.Fatalf("deploy/loop has %v", slices.Sorted(maps.Keys(all)))
	}
	for id, object := range base {
		if _, job := object.(*batchv1.CronJob); !job && !equality.Semantic.DeepEqual(object, all[id]) {
			t.Errorf("%s is not as in deploy/base", id)
		}
	}
	job, pod := base["CronJob quorate"].(*batchv1.CronJob).Spec.JobTemplate.Spec.Template, deployment.Spec.Template
	want, got := job.Spec.Containers[0], pod.Spec.Containers[0]
	requireLoopUnderstood(t, got)
	want.Args, want.Ports, want.ReadinessProbe, want.LivenessProbe = got.Args, got.Ports, got.ReadinessProbe, got.LivenessProbe
	job.Spec.Containers[0] = want
	job.Spec.RestartPolicy, job.Spec.TopologySpreadConstraints = "", pod.Spec.TopologySpreadConstraints
	job.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	if !equality.Semantic.DeepEqual(job, pod) || deployment.Namespace != "quorate-system" || *deployment.Spec.Replicas != 2 {
		t.Errorf("its pods are not like those of deploy/base:\n%+v\n%+v", pod, job)
	}
}

// requireLoopUnderstood fails unless this binary accepts a loop's command line and answers the probes.
func requireLoopUnderstood(t *testing.T, c corev1.Container) {
	t.Helper()
	command, flags, err := newRoot(streams{}).Find(c.Args)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	f := &loopFlags{on: true, often: reconcile.Intervals{Git: time.Second, Resync: time.Second, Etcd: time.Second}}
	if err := f.check(command.Flags().Changed); err != nil || !command.Flags().Changed("loop") {
		t.Errorf("%q is not a loop: %v", c.Args, err)
	}
	if port := c.Ports[0]; command.Flags().Lookup("listen").Value.String() != fmt.Sprintf(":%d", port.ContainerPort) {
		t.Errorf("it listens elsewhere than at %+v", port)
	}
	routes := handler(&reconcile.Reconciler{}, nil)
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		answer := httptest.NewRecorder()
		routes.ServeHTTP(answer, httptest.NewRequest("GET", probe.HTTPGet.Path, nil))
		if answer.Code == http.StatusNotFound || probe.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Errorf("nothing responds to %+v", probe.HTTPGet)
		}
	}
}

// TestDeployPrivateMountsGitCredentials checks that the credentials of a private repository are mounted both in the
// CronJob and in the loop.
func TestDeployPrivateMountsGitCredentials(t *testing.T) {
	job := withComponent(t, "base", "private")["CronJob quorate"].(*batchv1.CronJob)
	loop := withComponent(t, "loop", "private")["Deployment quorate"].(*appsv1.Deployment)
	for what, pod := range map[string]corev1.PodSpec{
		"the CronJob": job.Spec.JobTemplate.Spec.Template.Spec, "the loop": loop.Spec.Template.Spec,
	} {
		c := pod.Containers[0]
		requireUnderstood(t, c.Args)
		at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == deploy.Credentials })
		if at < 0 || !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == c.VolumeMounts[at].Name && v.Secret != nil && v.Secret.SecretName == "quorate-git"
		}) || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup {
			t.Errorf("%s mounts %v of %v", what, c.VolumeMounts, pod.Volumes)
		}
	}
}

// TestDeployNetworkPolicyAllowsMembers checks that the policy is in the namespace of the CronJob's pods, selects these
// pods, and allows them to reach the members that Quorate creates. A cluster's own NetworkPolicy identifies Quorate by
// the labels of these pods and of their namespace.
func TestDeployNetworkPolicyAllowsMembers(t *testing.T) {
	all := withComponent(t, "base", "network-policy")
	policy, _ := all["NetworkPolicy quorate"].(*networkingv1.NetworkPolicy)
	if policy == nil {
		t.Fatal("no NetworkPolicy quorate")
	}
	job := all["CronJob quorate"].(*batchv1.CronJob)
	pods := job.Spec.JobTemplate.Spec.Template.Labels
	selects := func(selector *metav1.LabelSelector, of map[string]string) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && s.Matches(labels.Set(of))
	}
	if policy.Namespace != job.Namespace || !selects(&policy.Spec.PodSelector, pods) {
		t.Errorf("it is for %s in %s", policy.Spec.PodSelector.String(), policy.Namespace)
	}
	if last := policy.Spec.Egress[len(policy.Spec.Egress)-1]; !selects(last.To[0].PodSelector, objects.MemberLabels("a")) || last.Ports[0].Port.IntValue() != objects.ClientPort {
		t.Errorf("members are out of reach: %v", last)
	}
	namespace := all["Namespace "+job.Namespace].(*corev1.Namespace)
	for what, got := range map[string]map[string]string{"pods": pods, "namespace": namespace.Labels} {
		if !selects(&metav1.LabelSelector{MatchLabels: objects.OwnLabels()}, got) {
			t.Errorf("the NetworkPolicy of a cluster does not know the %s of deploy/base, which have %v", what, got)
		}
	}
}

// TestDeployIndexedJobRunsShards checks that, with the component, each pod of the Job knows its shard, and a failing
// pod does not stop the other pods. Everything else is the same as in deploy/base.
func TestDeployIndexedJobRunsShards(t *testing.T) {
	all := withComponent(t, "base", "indexed-job")
	job := all["CronJob quorate"].(*batchv1.CronJob).Spec.JobTemplate.Spec
	if job.CompletionMode == nil || *job.CompletionMode != batchv1.IndexedCompletion || job.Completions == nil || job.Parallelism == nil || *job.Completions != *job.Parallelism {
		t.Fatalf("it is not a Job of shards that run at the same time: %+v", job)
	}
	if job.BackoffLimit != nil || job.BackoffLimitPerIndex == nil || *job.BackoffLimitPerIndex != 0 {
		t.Errorf("a failing shard ends others, or is retried: %v, %v", job.BackoffLimit, job.BackoffLimitPerIndex)
	}
	c, alone := container(t, all), container(t, kustomize(t, "../../deploy/base"))
	if !slices.Equal(c.Env, []corev1.EnvVar{{Name: completionsVariable, Value: fmt.Sprint(*job.Completions)}}) || !slices.Equal(c.Args, alone.Args) {
		t.Errorf("it has the arguments %v and %q", c.Env, c.Args)
	}
	t.Setenv(indexVariable, "3")
	t.Setenv(completionsVariable, c.Env[0].Value)
	if got, err := (&liveFlags{part: &part{}}).shard(); err != nil || got != (shard.Shard{Index: 3, Of: 4}) {
		t.Errorf("its last pod considers itself to be %s, %v", got, err)
	}
}

// withComponent renders deploy/base, or another resource, with one of the components.
func withComponent(t *testing.T, resource, component string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("resources: [%[1]s/%[2]s]\ncomponents: [%[1]s/%[3]s]\n", base, resource, component)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, dir)
}

func container(t *testing.T, objects map[string]any) corev1.Container {
	t.Helper()
	job, _ := objects["CronJob quorate"].(*batchv1.CronJob)
	if job == nil || len(job.Spec.JobTemplate.Spec.Template.Spec.Containers) != 1 {
		t.Fatal("no CronJob quorate with one container")
	}
	return job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
}

func requireUnderstood(t *testing.T, args []string) {
	t.Helper()
	command, flags, err := newRoot(streams{}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		t.Fatal(err)
	}
}

// TestDeployMonitoringSelectsMembersAndLoop checks that Prometheus selects members by the name of their port, and
// labels each member with its cluster. If Quorate runs as a loop, Prometheus also selects the loop, whose metrics
// already name their cluster.
func TestDeployMonitoringSelectsMembersAndLoop(t *testing.T) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/monitoring")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, r := range rendered.Resources() {
		kinds[r.GetKind()+" "+r.GetName()] = true
		if r.GetKind() != "PodMonitor" {
			continue
		}
		var monitor struct {
			Spec struct {
				NamespaceSelector   struct{ Any bool }
				Selector            metav1.LabelSelector
				PodMetricsEndpoints []struct {
					Port              string
					HonorLabels       bool
					Relabelings       []struct{ SourceLabels []string }
					MetricRelabelings []struct {
						SourceLabels  []string
						Regex, Action string
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(r.MustYaml()), &monitor); err != nil {
			t.Fatal(err)
		}
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		endpoint := monitor.Spec.PodMetricsEndpoints[0]
		if r.GetName() == "quorate" {
			pod := kustomize(t, "../../deploy/loop")["Deployment quorate"].(*appsv1.Deployment).Spec.Template
			if !selector.Matches(labels.Set(pod.Labels)) || selector.Matches(labels.Set(objects.MemberLabels("a"))) ||
				!endpoint.HonorLabels || endpoint.Port != pod.Spec.Containers[0].Ports[0].Name {
				t.Errorf("it selects %s, and scrapes %+v", selector, endpoint)
			}
			if monitor.Spec.NamespaceSelector.Any {
				t.Error("pods in any namespace can report metrics about any cluster")
			}
			continue
		}
		if !selector.Matches(labels.Set(objects.MemberLabels("a"))) || selector.Matches(labels.Set(objects.Labels("a"))) {
			t.Errorf("it selects %s", selector)
		}
		if drop := endpoint.MetricRelabelings; len(drop) != 1 || drop[0].Action != "drop" || drop[0].Regex != "quorate_.*" || !slices.Equal(drop[0].SourceLabels, []string{"__name__"}) {
			t.Errorf("a member can report how runs of Quorate have ended: %+v", drop)
		}
		pod := read(t, "testdata/objects/founding_3_of_3.6.txtar")
		if !strings.Contains(pod, fmt.Sprintf("- containerPort: %d\n          name: %s\n", objects.MetricsPort, endpoint.Port)) {
			t.Errorf("members have no port %s", endpoint.Port)
		}
		label := "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(objects.LabelCluster)
		if !slices.Equal(endpoint.Relabelings[0].SourceLabels, []string{label}) {
			t.Errorf("the cluster is taken from %q, want %s", endpoint.Relabelings[0].SourceLabels, label)
		}
	}
	for _, kind := range []string{"PodMonitor etcd", "PodMonitor quorate", "PrometheusRule quorate", "ConfigMap quorate-dashboards"} {
		if !kinds[kind] {
			t.Errorf("deploy/monitoring has %v, and no %s", kinds, kind)
		}
	}
}
