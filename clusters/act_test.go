package clusters

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/clusters/v1alpha1/crd"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// stage is a cluster on a real API server without controllers: the test creates the pods.
type stage struct {
	*testing.T
	server *kubetest.Server
	live   *Live
	spec   string // as declared in git
}

func TestMain(m *testing.M) { os.Exit(kubetest.Tests{M: m}.Run()) }

// newStage returns a stage on an API server that other tests use later.
func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOn(t, kubetest.Shared(t, installCRD))
}

func installCRD(server *kubetest.Server) error {
	client, err := kube.New(server.Config)
	if err != nil {
		return err
	}
	return client.InstallCRD(context.Background(), crd.YAML)
}

// newStageOn returns a stage on an API server that has the CustomResourceDefinition.
func newStageOn(t *testing.T, server *kubetest.Server) *stage {
	t.Helper()
	client, err := kube.New(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := server.Client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	live := New(client, Options{Namespaces: []string{"default"}, LeaseDuration: time.Hour, Timeout: time.Second})
	t.Cleanup(func() { _ = live.Close(context.Background()) })
	return &stage{T: t, server: server, live: live, spec: "version: 3.6.16"}
}

// observe observes the cluster as a pass does.
func (s *stage) observe() *cluster {
	s.Helper()
	text := "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a, namespace: default}\nspec: {" + s.spec + "}\n"
	var applied, defaulted map[string]any
	for _, object := range []*map[string]any{&applied, &defaulted} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			s.Fatal(err)
		}
	}
	if err := schema.Default(defaulted); err != nil {
		s.Fatal(err)
	}
	declaration := reconcile.Declaration{Applied: applied}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(defaulted, &declaration.Cluster); err != nil {
		s.Fatal(err)
	}
	seen, err := s.live.Observe(s.Context(), reconcile.Desired{Clusters: []reconcile.Declaration{declaration}}, nil)
	if err != nil || len(seen.Clusters) != 1 {
		s.Fatalf("%d clusters: %v", len(seen.Clusters), err)
	}
	c := seen.Clusters[0].(*cluster)
	if _, err := c.State(s.Context()); err != nil {
		s.Fatal(err)
	}
	return c
}

// set returns the current StatefulSet.
func (s *stage) set() *appsv1.StatefulSet {
	s.Helper()
	set, err := s.server.Client.AppsV1().StatefulSets("default").Get(s.Context(), "a", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return set
}

// do carries out an action and checks whether it changes anything as expected.
func (s *stage) do(c *cluster, a decide.Action, changes bool) {
	s.Helper()
	outcome, err := c.Do(s.Context(), a)
	if err != nil || outcome.Changed != changes {
		s.Fatalf("%s: %+v, %v", a, outcome, err)
	}
}

// refuse carries out an action and expects an error that contains why.
func (s *stage) refuse(c *cluster, a decide.Action, why string) {
	s.Helper()
	if outcome, err := c.Do(s.Context(), a); err == nil || !strings.Contains(err.Error(), why) {
		s.Fatalf("%s: %+v, %v", a, outcome, err)
	}
}

// form writes the record of a cluster that has formed and is sealed.
func (s *stage) form() {
	s.Helper()
	c := s.observe()
	record := c.state.Record
	if made := c.state.Objects.RunsToken; made != record.Token || made == "" {
		s.Errorf("volumes are created for token %q, but the record has %q", made, record.Token)
	}
	record.ClusterID = 0xc1
	for _, m := range record.Members {
		m.Mode = decide.Sealed
		record = record.With(m)
	}
	in, err := c.input(record)
	if err != nil {
		s.Fatal(err)
	}
	ctx, release, err := c.hold(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer release()
	if in.Leads {
		s.Error("clients can reach members that may still bootstrap the cluster")
	}
	if _, err := c.applySealed(ctx, in); err != nil {
		s.Fatal(err)
	}
}

// makePods creates the pods and claims as Kubernetes would. The pods are assigned to a node, so that they are not
// deleted immediately.
func (s *stage) makePods() {
	s.Helper()
	set := inventory.Get[*appsv1.StatefulSet](s.observe().own, "StatefulSet", "a")
	for n := range 3 {
		name := objects.PodName("a", n)
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.Spec.NodeName = name, "somewhere"
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		if _, err := s.server.Client.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: set.Spec.VolumeClaimTemplates[0].ObjectMeta, Spec: set.Spec.VolumeClaimTemplates[0].Spec}
		claim.Name = objects.VolumeClaimName("a", n)
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if _, err := s.server.Client.CoreV1().PersistentVolumeClaims("default").Create(s.Context(), claim, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// endPods removes all pods, as the kubelet eventually does.
func (s *stage) endPods() {
	s.Helper()
	now := int64(0)
	err := s.server.Client.CoreV1().Pods("default").DeleteCollection(s.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// settled checks that only the named objects have drifted.
func (s *stage) settled(c *cluster, but ...string) {
	s.Helper()
	for _, fact := range c.state.Objects.Drift {
		if !slices.ContainsFunc(but, func(id string) bool { return strings.HasPrefix(fact, id) }) {
			s.Errorf("drift: %s", fact)
		}
	}
	if len(c.state.Objects.Drift) < len(but) {
		s.Errorf("drift of %v is not seen: %v", but, c.state.Objects.Drift)
	}
}

// TestActions carries out the actions that do not require etcd, from bootstrapping a cluster to deleting it, on a real
// API server.
func TestActions(t *testing.T) {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.settled(s.observe())
	s.form()
	s.makePods()
	s.settled(s.observe())
	s.restoreConfigMap()
	s.rollOut()
	s.restart()
	s.remove()
	s.loseClaim()
	s.stop()
	s.end()
}

// restoreConfigMap merges an older ConfigMap, from when the cluster had two more members, as a backup tool does. The
// tool then owns the restored keys, so apply alone would keep the files of those two members.
func (s *stage) restoreConfigMap() {
	s.Helper()
	configMaps := s.server.Client.CoreV1().ConfigMaps("default")
	live, err := configMaps.Get(s.Context(), "a-members", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	before := maps.Clone(live.Data)
	live.Data["a-3-3.6.16-old.yaml"], live.BinaryData = "name: a-3", map[string][]byte{"a-4-3.6.16-old.yaml": []byte("name: a-4")}
	if _, err := configMaps.Update(s.Context(), live, metav1.UpdateOptions{FieldManager: "velero"}); err != nil {
		s.Fatal(err)
	}
	c := s.observe()
	s.settled(c, "ConfigMap a-members: changed at data.a-3-3.6.16-old.yaml, data.a-4-3.6.16-old.yaml")
	s.do(c, decide.ApplyObjects{}, true)
	after := s.observe()
	s.settled(after)
	now := inventory.Get[*corev1.ConfigMap](after.own, "ConfigMap", "a-members")
	if !maps.Equal(now.Data, before) || len(now.BinaryData) > 0 || len(after.rewritten) > 0 {
		s.Errorf("keys %q and %q, rewritten %v", slices.Sorted(maps.Keys(now.Data)), slices.Sorted(maps.Keys(now.BinaryData)), after.rewritten)
	}
}

// rollOut checks that no object drifts before the rollout starts, that the ConfigMap then contains configuration files
// for both templates, and that the rollout starts only once.
func (s *stage) rollOut() {
	s.spec = "version: 3.7.3, etcd: {quota: 1Gi}"
	asked := s.observe()
	s.settled(asked, "EtcdCluster a")
	s.refuse(asked, decide.StartRollout{Version: "3.7.1", SpecHash: "x"}, "the spec now declares 3.7.3-")
	s.do(asked, decide.Declare{}, true)
	late := s.observe()
	s.settled(late)
	declared := objects.DeclaredTemplate(&late.target.Cluster)
	start := decide.StartRollout{Version: declared.Version, SpecHash: declared.SpecHash}
	before := inventory.Get[*corev1.ConfigMap](late.own, "ConfigMap", "a-members").Data
	s.do(s.observe(), start, true)
	after := s.observe()
	s.settled(after)
	files := inventory.Get[*corev1.ConfigMap](after.own, "ConfigMap", "a-members").Data
	for key, file := range before {
		if files[key] != file {
			s.Errorf("%s changed with the rollout", key)
		}
	}
	if len(files) != 7 || after.runs() != declared {
		s.Errorf("%d files, new pods are %s", len(files), after.runs())
	}
	s.do(late, start, false)
}

// restart checks that only the observed pod is deleted, only once, and with its grace period.
func (s *stage) restart() {
	c := s.observe()
	r := c.state.Replica(1)
	s.do(c, decide.RestartReplica{Ordinal: 1, PodUID: "another"}, false)
	s.do(c, decide.RestartReplica{Ordinal: 7, PodUID: r.PodUID}, false)
	s.say("a-1", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
	s.do(c, decide.RestartReplica{Ordinal: 1, PodUID: r.PodUID}, false) // the pod has recovered by itself
	s.say("a-1", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: objects.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}})
	s.do(c, decide.RestartReplica{Ordinal: 1, PodUID: r.PodUID}, false) // the pod is about to recover
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	s.say("a-1", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: objects.Container, State: waiting}}})
	s.do(c, decide.RestartReplica{Ordinal: 1, PodUID: r.PodUID}, true)
	s.do(c, decide.RestartReplica{Ordinal: 1, PodUID: r.PodUID}, false)
	pod := s.observe().own.Pod("a-1")
	if pod == nil || pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds < 30 {
		s.Errorf("a-1 is not ending in its own time: %v", pod)
	}
}

// say sets the status of a pod, as the kubelet would.
func (s *stage) say(name string, status corev1.PodStatus) {
	s.Helper()
	pods := s.server.Client.CoreV1().Pods("default")
	pod, err := pods.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	pod.Status = status
	if _, err := pods.UpdateStatus(s.Context(), pod, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// remove checks that members and volumes are not added or removed while etcd's membership is unknown.
func (s *stage) remove() {
	c := s.observe()
	s.refuse(c, decide.DeleteVolume{Ordinal: 2, VolumeUID: c.state.Replica(2).VolumeUID}, "etcd does not return its member list")
	s.refuse(c, decide.AddLearner{Ordinal: 2, PeerURL: "https://x"}, "data-a-2 has the new member's name")
	s.do(c, decide.AddLearner{Ordinal: 3, PeerURL: "https://x"}, false)
	for learner, may := range map[*decide.Member]bool{
		{Learner: true, PeerURL: objects.PeerURL(&c.target.Cluster, 2), Name: "a-2", Started: true}: true, // sealed
		{Learner: true, PeerURL: objects.PeerURL(&c.target.Cluster, 2)}:                             false,
		{Learner: true, PeerURL: objects.PeerURL(&c.target.Cluster, 3)}:                             false,
		{Learner: true, PeerURL: objects.PeerURL(&c.target.Cluster, 3), Name: "a-3", Started: true}: false, // unrecorded
		{Learner: true, PeerURL: "https://elsewhere:2380", Started: true}:                           false,
		{PeerURL: objects.PeerURL(&c.target.Cluster, 2), Started: true}:                             true, // not a learner
	} {
		why, err := c.besideJoining(s.Context(), decide.Membership{Known: true, Members: []decide.Member{*learner}})
		if err != nil || (why == "") != may {
			s.Errorf("with %+v: %q, %v", learner, why, err)
		}
	}
	s.do(c, decide.RemoveMember{ID: 1, Name: "a-0"}, false)
	s.refuse(c, decide.DeleteObjects{}, "StatefulSet a is not scaled to 0")
}

// loseClaim deletes a claim whose volume exists as long as a pod uses it. It checks that objects of a running cluster
// are still corrected, because members are replaced this way, but that pods are not stopped.
func (s *stage) loseClaim() {
	claims, core := s.server.Client.CoreV1().PersistentVolumeClaims("default"), s.server.Client
	claim, err := claims.Get(s.Context(), "data-a-0", metav1.GetOptions{})
	if err == nil {
		err = claims.Delete(s.Context(), claim.Name, metav1.DeleteOptions{})
	}
	if err == nil {
		err = core.PolicyV1().PodDisruptionBudgets("default").Delete(s.Context(), "a", metav1.DeleteOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	if r := s.observe().state.Replica(0); !r.VolumeTerminating {
		s.Fatalf("the claim is not being deleted: %+v", r)
	}
	runs := s.spec
	s.spec += ", lifecycle: Stopped"
	s.do(s.observe(), decide.ApplyObjects{}, false)
	s.spec = runs
	s.do(s.observe(), decide.StopPods{}, false)
	s.do(s.observe(), decide.ApplyObjects{}, true)
	s.settled(s.observe())

	going, err := claims.Patch(s.Context(), claim.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err == nil {
		going.ObjectMeta = metav1.ObjectMeta{Name: claim.Name, Labels: claim.Labels, Annotations: claim.Annotations}
		going.Status = corev1.PersistentVolumeClaimStatus{}
		_, err = claims.Create(s.Context(), going, metav1.CreateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// stop checks that only the replica count of the StatefulSet changes, and that it becomes 0.
func (s *stage) stop() {
	s.spec += ", lifecycle: Stopped"
	c := s.observe()
	s.settled(c, "EtcdCluster a", "StatefulSet a: changed at spec.replicas")
	s.do(c, decide.ApplyObjects{}, true)
	c = s.observe()
	s.settled(c)
	if c.state.Objects.RunsReplicas != 0 {
		s.Errorf("%d pods", c.state.Objects.RunsReplicas)
	}
}

// end checks that nothing is deleted while a pod exists. Afterwards, all objects except the custom resource and the
// volumes are deleted, and the volumes last.
func (s *stage) end() {
	s.spec = strings.Replace(s.spec, "Stopped", "Deleted, storage: {retention: Delete}", 1)
	s.do(s.observe(), decide.Declare{}, true)
	c := s.observe()
	volume := decide.DeleteVolume{Ordinal: 2, VolumeUID: c.state.Replica(2).VolumeUID}
	s.refuse(c, decide.DeleteObjects{}, "pods of default/a still exist")
	s.refuse(c, volume, "pods of default/a still exist")
	s.endPods()
	s.do(s.observe(), decide.DeleteObjects{}, true)
	s.do(c, decide.DeleteObjects{}, false)
	c = s.observe()
	s.settled(c)
	if c.own.Custom == nil || c.own.Custom.Spec.Lifecycle != v1alpha1.LifecycleDeleted || len(c.own.Objects) > 0 || len(c.own.Claims) != 3 {
		s.Errorf("custom resource %v, %d objects, %d claims", c.own.Custom, len(c.own.Objects), len(c.own.Claims))
	}
	s.do(c, decide.DeleteVolume{Ordinal: 2, VolumeUID: "another"}, false)
	s.do(c, volume, true)
	s.do(c, volume, false) // already being deleted
	if r := s.observe().state.Replica(2); !r.VolumeTerminating {
		s.Errorf("the volume is not being deleted: %+v", r)
	}
}
