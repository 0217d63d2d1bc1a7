package objects

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

const manager = kube.Manager

// TestNoDriftAfterApply applies the objects of every golden file to a real API server. It checks that the returned
// objects do not count as drift, and that applying them again changes nothing. QUORATE_KUBE_APISERVER is the path of
// the API server, and QUORATE_ETCD_DIR contains an etcd for it.
func TestNoDriftAfterApply(t *testing.T) {
	server := startAPIServer(t)
	files, err := filepath.Glob("../../testdata/objects/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, sections := openGolden(t, file)
			in := goldenInput(t, sections)
			in.Cluster.Namespace = fmt.Sprintf("test-%d", i)
			if kept, isKept := in.Kept.(*applyappsv1.StatefulSetApplyConfiguration); isKept {
				kept.WithNamespace(in.Cluster.Namespace)
			}
			s := *server
			s.T = t
			// Alternate between the two encodings from file to file, because the decoded objects differ.
			s.accept = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}[i%2]
			s.apply("/api/v1/namespaces/"+in.Cluster.Namespace, applycorev1.Namespace(in.Cluster.Namespace).
				WithLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}))
			s.applyTwice(in)
			s.changeAndApply(in)
			s.keepTemplate(in)
			s.noticeStrangers(in)
			s.createPod(in)
			s.createBackup(in)
			s.createRestore(in)
		})
	}
}

// applyTwice applies every object twice.
func (s *apiServer) applyTwice(in Input) {
	s.Helper()
	for i, o := range build(s.T, in) {
		first := s.apply(pathOf(in, o.Identity), o.Apply)
		if paths, err := Differences(o.Apply, extract(s.T, first)); err != nil || len(paths) > 0 {
			s.Errorf("%s drifts immediately: %v %v", o, paths, err)
		}
		is := standing{o.Apply, first.(metav1.Object)}
		if !is.stands() {
			s.Errorf("%s does not stand", o)
		}
		is.changeAtRandom(s.T, rand.New(rand.NewPCG(uint64(i), 0)), 5)
		second := s.apply(pathOf(in, o.Identity), o.Apply)
		if first.(metav1.Object).GetResourceVersion() != second.(metav1.Object).GetResourceVersion() {
			s.Errorf("%s is changed by applying it again", o)
		}
	}
}

// changeAndApply changes fields that may change in a live cluster, inside and outside lists.
func (s *apiServer) changeAndApply(in Input) {
	s.Helper()
	changed := in
	changed.Cluster = in.Cluster.DeepCopy()
	pod := &changed.Cluster.Spec.Pod
	pod.Resources.Requests = map[string]resource.Quantity{"cpu": quantity("0.0005"), "memory": quantity("1.5Gi"), "ephemeral-storage": quantity("1e3")}
	pod.Resources.Limits = nil
	pod.Tolerations = []v1alpha1.Toleration{{Operator: "Exists"}}
	zone := v1alpha1.TopologySpreadConstraint{MaxSkew: 2, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway"}
	host := v1alpha1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: "DoNotSchedule"}
	pod.TopologySpreadConstraints = []v1alpha1.TopologySpreadConstraint{host, zone}
	pod.Affinity, pod.NodeSelector, pod.PriorityClassName = nil, nil, ""
	changed.Cluster.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Clients: []v1alpha1.NetworkPeer{{CIDR: "2001:db8::/64"}, {Namespaces: map[string]v1alpha1.PodLabelValue{"b": ""}}}}
	changed.Cluster.Spec.Backup = &v1alpha1.BackupSpec{
		Schedule: "H 3 * * 1-5", TimeZone: "Europe/Berlin", Deadline: "10m", Suspend: true, IdentitySecretName: "identity", Recipients: []v1alpha1.BackupRecipient{"age1$(X)"},
		To:        v1alpha1.BackupDestination{S3: &v1alpha1.S3Destination{Bucket: "b2", CASecretName: "ca"}, SecretName: "s3"},
		Retention: &v1alpha1.BackupRetention{Daily: 7, MinAge: "24h"},
	}
	changed.Cluster.Spec.Image.PullSecrets = []v1alpha1.SecretReference{{Name: "z"}, {Name: "b"}}
	s.applyTwice(changed)
	slices.Reverse(pod.TopologySpreadConstraints)
	slices.Reverse(changed.Cluster.Spec.Image.PullSecrets)
	s.applyTwice(changed)
	s.applyTwice(in)
}

// keepTemplate changes the number of pods of the live StatefulSet while the spec requests a different template, and
// then reverts the change.
func (s *apiServer) keepTemplate(in Input) {
	s.Helper()
	path := pathOf(in, Identity{"StatefulSet", in.Cluster.Name})
	before := s.call(http.MethodGet, path, runtime.ContentTypeJSON, nil).(*appsv1.StatefulSet)
	other := in
	other.Cluster = in.Cluster.DeepCopy()
	other.Cluster.Spec.Version, other.Cluster.Spec.Lifecycle = "3.6.1", v1alpha1.LifecycleRunning
	other.Record = record(7, decide.Sealed)
	other.Kept = extract(s.T, before)
	s.applyTwice(other)
	after := s.call(http.MethodGet, path, runtime.ContentTypeJSON, nil).(*appsv1.StatefulSet)
	if *after.Spec.Replicas != 7 || !reflect.DeepEqual(before.Spec.Template, after.Spec.Template) {
		s.Errorf("%d pods of %v, not 7 of %v", *after.Spec.Replicas, after.Spec.Template, before.Spec.Template)
	}
	s.applyTwice(in)
}

// noticeStrangers checks that a change to the number of replicas by a different manager counts as drift.
func (s *apiServer) noticeStrangers(in Input) {
	s.Helper()
	path := pathOf(in, Identity{"StatefulSet", in.Cluster.Name})
	s.call(http.MethodPatch, path+"?fieldManager=stranger", "application/merge-patch+json", map[string]any{"spec": map[string]any{"replicas": 7}})
	want, err := statefulSet(in)
	if err != nil {
		s.Fatal(err)
	}
	live := s.call(http.MethodGet, path, runtime.ContentTypeJSON, nil)
	if paths, err := Differences(want, extract(s.T, live)); err != nil || !slices.Equal(paths, []string{"spec.replicas"}) {
		s.Errorf("differences %v, %v", paths, err)
	}
}

// createPod creates a pod as the StatefulSet would, to check that the API server accepts it.
func (s *apiServer) createPod(in Input) {
	s.Helper()
	namespace := "/api/v1/namespaces/" + in.Cluster.Namespace
	s.apply(namespace+"/serviceaccounts/default", applycorev1.ServiceAccount("default", in.Cluster.Namespace))
	template := s.call(http.MethodGet, pathOf(in, Identity{"StatefulSet", in.Cluster.Name}), runtime.ContentTypeJSON, nil).(*appsv1.StatefulSet).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind, pod.Name = "v1", "Pod", PodName(in.Cluster.Name, 0)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeData, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: VolumeClaimName(in.Cluster.Name, 0)},
	}})
	s.call(http.MethodPost, namespace+"/pods", runtime.ContentTypeJSON, pod)
}

// createBackup creates a pod as the CronJob's Jobs would, and a Job as a pass does, to check that the API server
// accepts both.
func (s *apiServer) createBackup(in Input) {
	s.Helper()
	if in.Cluster.Spec.Backup == nil {
		return
	}
	template := s.call(http.MethodGet, pathOf(in, NamesOf(in.Cluster.Name).Backups()), runtime.ContentTypeJSON, nil).(*batchv1.CronJob).Spec.JobTemplate.Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind, pod.Name, pod.Spec.ServiceAccountName = "v1", "Pod", "backup", "default"
	s.call(http.MethodPost, "/api/v1/namespaces/"+in.Cluster.Namespace+"/pods", runtime.ContentTypeJSON, pod)
	long := strings.Repeat("a", 45) // the longest name of a cluster with backups
	for _, a := range []decide.StartBackup{{Generation: 7}, {DiffersSince: time.Now()}} {
		job, err := BackupJob(in, a)
		if err != nil {
			s.Fatal(err)
		}
		s.apply(pathOf(in, job.Identity), job.Apply)
		if name := BackupJobName(long, a); len(name) > 63 {
			s.Errorf("the pods' labels cannot contain %s", name)
		}
	}
}

// createRestore creates the claim, the Job and one of its pods, as for a cluster that is being created from a backup.
func (s *apiServer) createRestore(in Input) {
	s.Helper()
	if !in.Record.Restoring() {
		return
	}
	for _, object := range restoreObjects(s.T, in) {
		s.apply(pathOf(in, object.Identity), object.Apply)
	}
	template := s.call(http.MethodGet, pathOf(in, NamesOf(in.Cluster.Name).Restore()), runtime.ContentTypeJSON, nil).(*batchv1.Job).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.APIVersion, pod.Kind, pod.Name, pod.Spec.ServiceAccountName = "v1", "Pod", "restore", "default"
	s.call(http.MethodPost, "/api/v1/namespaces/"+in.Cluster.Namespace+"/pods", runtime.ContentTypeJSON, pod)
}

// extract returns the fields of a live object that the test's manager owns.
func extract(t *testing.T, live runtime.Object) any {
	t.Helper()
	var owned any
	var err error
	switch o := live.(type) {
	case *corev1.ConfigMap:
		owned, err = applycorev1.ExtractConfigMap(o, manager)
	case *corev1.Secret:
		owned, err = applycorev1.ExtractSecret(o, manager)
	case *corev1.Service:
		owned, err = applycorev1.ExtractService(o, manager)
	case *policyv1.PodDisruptionBudget:
		owned, err = applypolicyv1.ExtractPodDisruptionBudget(o, manager)
	case *networkingv1.NetworkPolicy:
		owned, err = applynetworkingv1.ExtractNetworkPolicy(o, manager)
	case *batchv1.CronJob:
		owned, err = applybatchv1.ExtractCronJob(o, manager)
	case *appsv1.StatefulSet:
		owned, err = applyappsv1.ExtractStatefulSet(o, manager)
	default:
		err = fmt.Errorf("no way to extract from a %T", live)
	}
	if err != nil {
		t.Fatal(err)
	}
	return owned
}

func pathOf(in Input, i Identity) string {
	collection := map[string]string{
		"ConfigMap": "/api/v1/%s/configmaps", "Secret": "/api/v1/%s/secrets", "Service": "/api/v1/%s/services",
		"PodDisruptionBudget": "/apis/policy/v1/%s/poddisruptionbudgets", "StatefulSet": "/apis/apps/v1/%s/statefulsets",
		"PersistentVolumeClaim": "/api/v1/%s/persistentvolumeclaims",
		"CronJob":               "/apis/batch/v1/%s/cronjobs", "Job": "/apis/batch/v1/%s/jobs",
		"NetworkPolicy": "/apis/networking.k8s.io/v1/%s/networkpolicies",
	}[i.Kind]
	return fmt.Sprintf(collection, "namespaces/"+in.Cluster.Namespace) + "/" + i.Name
}
