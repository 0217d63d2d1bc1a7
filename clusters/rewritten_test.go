package clusters

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// pass runs a pass over the cluster: it observes, decides, acts and reports.
func (s *stage) pass() report.Cluster {
	s.Helper()
	c := s.observe()
	entry := report.Cluster{State: c.state, Decision: decide.Decide(c.state)}
	if entry.Decision.Verdict == decide.Act {
		outcome, err := c.Do(s.Context(), entry.Decision.Action)
		if err != nil {
			s.Fatal(err)
		}
		entry.Outcome = &outcome
		if outcome.Changed {
			entry.Decision = decide.Retried(c.state, entry.Decision)
		}
	}
	if _, err := c.Report(s.Context(), entry, reconcile.SourceStatus{Revision: "main@sha1:1"}); err != nil {
		s.Fatal(err)
	}
	return entry
}

// rewrites creates an admission policy that applies a JSON patch to StatefulSets when they are written, and waits until
// the policy takes effect.
func (s *stage) rewrites(name, path, value string, isRewritten func(corev1.Container) bool) {
	s.Helper()
	always, reinvocation := admissionv1.FailurePolicyType("Fail"), admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy: &always, ReinvocationPolicy: reinvocation,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"CREATE", "UPDATE"},
			Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}},
		}}}},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "` + path + `", value: ` + value + `}]`,
		}}},
	}}
	admission := s.server.Client.AdmissionregistrationV1()
	if _, err := admission.MutatingAdmissionPolicies().Create(s.Context(), policy, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	if _, err := admission.MutatingAdmissionPolicyBindings().Create(s.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	probe := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}},
	}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		made, err := s.server.Client.AppsV1().StatefulSets("default").Create(s.Context(), probe, metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil && isRewritten(made.Spec.Template.Spec.Containers[0]) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the policy has no effect: %v", err)
		}
	}
}

// deleteSet deletes the StatefulSet, so that the next pass applies it again.
func (s *stage) deleteSet() {
	s.Helper()
	if err := s.server.Client.AppsV1().StatefulSets("default").Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// TestAdmissionRewritesAreNotReapplied checks, on a real API server, that a field changed by an admission policy is
// reported once and left alone. If security depends on the field, the cluster is blocked. In both cases, the field is
// not applied again and again.
func TestAdmissionRewritesAreNotReapplied(t *testing.T) {
	server := kubetest.Start(t) // its own, because the API server may apply deleted policies for some time
	if err := installCRD(server); err != nil {
		t.Fatal(err)
	}
	s := newStageOn(t, server)
	s.spec = "version: 3.6.16, pod: {resources: {limits: {cpu: 1, memory: 1Gi}}}"
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()

	s.rewrites("limits", "/spec/template/spec/containers/0/resources", `Object.spec.template.spec.containers.resources{limits: {"cpu": "2"}}`, func(c corev1.Container) bool { return len(c.Resources.Limits) > 0 })
	s.deleteSet()
	if first := s.pass(); decide.KindOf(first.Decision.Action) != "ApplyObjects" {
		t.Fatalf("got %s", first.Decision)
	}
	version := s.set().ResourceVersion
	for range 3 {
		entry := s.pass()
		if decide.KindOf(entry.Decision.Action) == "ApplyObjects" || len(entry.State.Objects.Rewritten) == 0 || len(entry.State.Objects.Drift) > 0 {
			t.Errorf("got %s with %+v", entry.Decision, entry.State.Objects)
		}
	}
	custom := s.observe().own.Custom
	told := meta.FindStatusCondition(custom.Status.Conditions, v1alpha1.ConditionFieldsRewritten)
	if told == nil || !strings.Contains(told.Message, "StatefulSet a: spec.template.spec.containers[etcd].resources.limits.cpu") {
		t.Errorf("the condition is %+v", told)
	}
	events, err := s.server.Client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
	warned := 0
	for _, event := range events.Items {
		if event.Reason == v1alpha1.ConditionFieldsRewritten {
			warned++
		}
	}
	if err != nil || warned != 1 || s.set().ResourceVersion != version {
		t.Errorf("%d events, %v; the StatefulSet is written again: %t", warned, err, s.set().ResourceVersion != version)
	}

	s.rewrites("root", "/spec/template/spec/containers/0/securityContext", `Object.spec.template.spec.containers.securityContext{runAsNonRoot: false}`, func(c corev1.Container) bool { return c.SecurityContext != nil })
	s.deleteSet()
	for range 4 { // missing once, then rewritten three times
		s.pass()
	}
	blocked := s.pass()
	if blocked.Decision.Verdict != decide.Block || blocked.Decision.Rule != "FieldsRewritten" || !strings.Contains(blocked.Decision.Message, "securityContext") {
		t.Errorf("got %s", blocked.Decision)
	}
}

// TestManyKeysAreComparedQuickly checks that a tenant cannot delay passes by adding as many keys as fit into a
// ConfigMap. Comparing each key with every other key would take 15 seconds.
func TestManyKeysAreComparedQuickly(t *testing.T) {
	wanted := objects.Object{Identity: objects.Identity{Kind: "ConfigMap", Name: "a-members"},
		Apply: applycorev1.ConfigMap("a-members", "default").WithData(map[string]string{"kept": "x"})}
	live := &corev1.ConfigMap{Data: map[string]string{"kept": "x"}}
	live.Name, live.Namespace = wanted.Name, "default"
	for i := range 100_000 {
		live.Data[strconv.FormatInt(int64(i), 36)] = ""
	}
	start := time.Now()
	different, err := differences(wanted, live)
	if took := time.Since(start); took > 5*time.Second || err != nil || len(different) < 100_000 {
		t.Errorf("%d differences after %s: %v", len(different), took, err)
	}
}

// TestDifferencesAreListedOnce checks that each unwanted key is listed as one difference, whether Quorate or another
// tool set it.
func TestDifferencesAreListedOnce(t *testing.T) {
	wanted := objects.Object{Identity: objects.Identity{Kind: "ConfigMap", Name: "a-members"},
		Apply: applycorev1.ConfigMap("a-members", "default").WithData(map[string]string{"kept": "x"})}
	live := &corev1.ConfigMap{Data: map[string]string{"kept": "x", "ours": "y", "theirs": "z"}}
	live.Name, live.Namespace = wanted.Name, "default"
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.Manager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:kept":{},"f:ours":{}}}`)}}
	different, err := differences(wanted, live)
	var paths []string
	for _, d := range different {
		paths = append(paths, d.Path)
	}
	if want := []string{"data.ours", "data.theirs"}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("%v %v, want %v", paths, err, want)
	}
}
