package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testAdmissionRewritesTemplate creates an admission policy that changes the resources in the pod template. Quorate
// must report the change without restarting pods because of it, must still replace a lost member, and must not apply
// the template more often than necessary.
func testAdmissionRewritesTemplate(t *testing.T, w *world) {
	w.rewriteLimits()
	set := w.objects.Resource(statefulSets).Namespace(w.namespace)
	orphan := metav1.DeletePropagationOrphan
	if err := set.Delete(w.ctx(), "a", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	pods := w.podUIDs("a")
	w.loseVolume("a-1")
	r := w.converge("--log-level", "info")
	w.requireOneCluster("a", 3)
	if now := w.podUIDs("a"); now["a-0"] != pods["a-0"] || now["a-2"] != pods["a-2"] || now["a-1"] == pods["a-1"] {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	if n := len(regexp.MustCompile(`detail="[^"]*applied [^"]*StatefulSet a\b`).FindAllString(r.stderr, -1)); n != 1 {
		t.Errorf("the StatefulSet was applied %d times:\n%s", n, r.stderr)
	}
	if warned := r.cluster("a").Warnings; !slices.ContainsFunc(warned, func(line string) bool { return strings.Contains(line, "containers[etcd].resources") }) {
		t.Errorf("nothing warns of it: %q", warned)
	}
	w.requireQuiet("a")
	if custom, err := w.object(etcdclusters, "a"); err != nil || !strings.Contains(fmt.Sprint(custom.Object["status"]), "FieldsRewritten") {
		t.Errorf("no condition names it: %v", err)
	}

	w.stopRewriting()
	dropped := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"etcd","resources":null}]}}}}`)
	eventually(t, "no effect of the policy", func() error {
		now, err := set.Patch(w.ctx(), "a", types.StrategicMergePatchType, dropped, metav1.PatchOptions{})
		if err == nil && strings.Contains(fmt.Sprint(now.Object), "777Mi") {
			err = fmt.Errorf("not yet")
		}
		return err
	})
	w.converge()
	if custom, err := w.object(etcdclusters, "a"); err != nil || strings.Contains(fmt.Sprint(custom.Object["status"]), "FieldsRewritten") {
		t.Errorf("a condition still names it: %v", err)
	}
}

// rewriteLimits creates an admission policy that changes the container resources in the namespace's StatefulSets. It
// returns once the policy is in effect.
func (w *world) rewriteLimits() {
	w.t.Helper()
	fail, never := admissionv1.Fail, admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy: &fail, ReinvocationPolicy: never,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"CREATE", "UPDATE"},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}},
			}}},
		},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "/spec/template/spec/containers/0/resources", value: Object.spec.template.spec.containers.resources{limits: {"memory": "777Mi"}, requests: {"memory": "77Mi"}}}]`,
		}}},
	}}
	admission := w.kube.AdmissionregistrationV1()
	if _, err := admission.MutatingAdmissionPolicies().Create(w.ctx(), policy, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name}}
	if _, err := admission.MutatingAdmissionPolicyBindings().Create(w.ctx(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.stopRewriting)
	eventually(w.t, "an effect of the policy", func() error {
		set, err := w.objects.Resource(statefulSets).Namespace(w.namespace).Patch(w.ctx(), "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`),
			metav1.PatchOptions{DryRun: []string{"All"}})
		if err == nil && !strings.Contains(fmt.Sprint(set.Object), "777Mi") {
			err = fmt.Errorf("not yet")
		}
		return err
	})
}

func (w *world) stopRewriting() {
	admission := w.kube.AdmissionregistrationV1()
	_ = admission.MutatingAdmissionPolicyBindings().Delete(w.ctx(), w.namespace, metav1.DeleteOptions{})
	_ = admission.MutatingAdmissionPolicies().Delete(w.ctx(), w.namespace, metav1.DeleteOptions{})
}
