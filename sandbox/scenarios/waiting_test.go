package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testNoRoom sets a quota that does not allow another pod. The reason is reported in Kubernetes' own words and, after
// two minutes, as requiring manual action. Once the quota is deleted, the cluster can return to three members.
func testNoRoom(t *testing.T, w *world) {
	quotas := w.kube.CoreV1().ResourceQuotas(w.namespace)
	room := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "room"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}},
	}
	if _, err := quotas.Create(w.ctx(), room, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is counted", func() error {
		if q, err := quotas.Get(w.ctx(), room.Name, metav1.GetOptions{}); err != nil || len(q.Status.Used) == 0 {
			return fmt.Errorf("%+v %w", q, err)
		}
		return nil
	})
	w.declare(modern, "replicas: 4")
	eventually(t, "it is told why there is no fourth pod", func() error {
		r := w.run("--until-converged", "--timeout", "6s")
		if said := r.cluster("a").Decision.Message; !strings.Contains(said, "exceeded quota") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	w.age(3 * time.Minute)
	if r := w.run("--until-converged").requireCode(t, exitBlocked); r.cluster("a").Decision.Rule != "WaitForMembers" {
		t.Errorf("three minutes later:\n%s", r)
	}
	w.requireCondition("a", "Stalled", "True", "WaitForMembers")
	if err := quotas.Delete(w.ctx(), room.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	w.requireSize(3)
}

// age backdates everything that the cluster is waiting for.
func (w *world) age(by time.Duration) {
	w.t.Helper()
	waiting := w.status("a").Waiting
	if len(waiting) == 0 {
		w.t.Fatal("nothing is waited for")
	}
	var entries []string
	for _, entry := range waiting {
		entries = append(entries, fmt.Sprintf(`{"rule": %q, "for": %q, "since": %q, "seen": %q}`, entry.Rule, entry.For, entry.Since.Add(-by).Format(time.RFC3339), entry.Seen.Format(time.RFC3339)))
	}
	patch := fmt.Sprintf(`{"status": {"waiting": [%s]}}`, strings.Join(entries, ", "))
	if _, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Patch(w.ctx(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		w.t.Fatal(err)
	}
}

// TestNoRightToReachPods checks that a missing right to reach pods is reported immediately, and that nothing is changed
// in the meantime.
func TestNoRightToReachPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, one)
	w.converge()
	role := deployedRole(t)
	for i := range role.Rules {
		role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == "pods/portforward" })
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })
	user := w.namespace + "-user"
	w.grant(role, user)
	r := w.runFrom(through(w.newProxyAs(user)), "run", "--until-converged").requireCode(t, exitBlocked).requireRule(t, "a", "MembershipUnknown")
	if !r.says("pods/portforward") {
		t.Errorf("it does not report which right is missing:\n%s", r)
	}
}

type waitStatus struct {
	Rule  string    `json:"rule"`
	For   string    `json:"for"`
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
}
