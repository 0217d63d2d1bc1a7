package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// testStatus checks every field of the status.
func testStatus(t *testing.T, w *world) {
	w.member("a", 0).put("status", "a revision")
	w.converge()
	id := w.requireOneCluster("a", 3)
	s := w.status("a")
	object := w.resource("a")

	check := func(field string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("status.%s is %v, want %v", field, got, want)
		}
	}
	check("observedGeneration", s.ObservedGeneration, object.GetGeneration())
	check("declaredRevision", s.DeclaredRevision, "main@sha1:"+strings.TrimSpace(w.repository.git(w.repository.work, "rev-parse", "HEAD")))
	check("action", s.Rule, "Converged")
	check("clusterID", s.ClusterID, id)
	check("version", s.Version, modern)
	check("membership", s.Voters, "3/3")
	check("replicas", s.Replicas, 3)
	check("readyReplicas", s.ReadyReplicas, 3)
	check("clientSecretName", s.ClientSecretName, "a-client-tls")
	check("endpoints", len(s.Endpoints), 3)
	for i, e := range s.Endpoints {
		if want := fmt.Sprintf("https://a-%d.a.%s.svc", i, w.namespace); !strings.HasPrefix(e, want) || !strings.HasSuffix(e, ":2379") {
			t.Errorf("status.endpoints[%d] is %s, want %s…:2379", i, e, want)
		}
	}
	w.requireCondition("a", "Ready", "True", "Converged")
	w.requireCondition("a", "Reconciling", "False", "")
	w.requireCondition("a", "Stalled", "False", "")
	w.requireCondition("a", "SourceReady", "True", "")
	for _, c := range s.Conditions {
		if c.ObservedGeneration != object.GetGeneration() || c.LastTransitionTime.IsZero() || c.Reason == "" {
			t.Errorf("condition %s lacks something: %+v", c.Type, c)
		}
	}
	w.checkMembers(t, s)
}

func (w *world) checkMembers(t *testing.T, s status) {
	if len(s.Members) != 3 {
		t.Fatalf("status.members has %d entries, want 3", len(s.Members))
	}
	leaders := 0
	for ordinal, m := range s.Members {
		etcd := w.member("a", ordinal)
		answer, err := etcd.Status(t.Context(), etcd.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("a-%d", ordinal)
		role := "Voter"
		if answer.Leader == answer.Header.MemberId {
			role = "Leader"
			leaders++
			if s.Leader != name {
				t.Errorf("status.leader is %s, etcd's leader is %s", s.Leader, name)
			}
		}
		want := memberStatus{
			Name: name, ID: fmt.Sprintf("%x", answer.Header.MemberId), Role: role, Version: modern, Health: "Healthy", Pod: name,
			Revision: m.Revision, DBSize: m.DBSize, DBSizeInUse: m.DBSizeInUse, Since: m.Since,
		}
		if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", want) {
			t.Errorf("status.members[%d] is %+v, want %+v", ordinal, m, want)
		}
		if m.Revision < 1 || m.DBSize <= 0 || m.DBSizeInUse <= 0 || m.DBSizeInUse > m.DBSize || m.Since.IsZero() {
			t.Errorf("status.members[%d] does not explain how much %s holds and since when: %+v", ordinal, name, m)
		}
	}
	if leaders != 1 {
		t.Errorf("%d members lead", leaders)
	}
}

func testScaleSubresource(t *testing.T, w *world) {
	scale, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Get(w.ctx(), "a", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Spec   struct{ Replicas int }
		Status struct {
			Replicas int
			Selector string
		}
	}
	convert(t, scale.Object, &got)
	if got.Spec.Replicas != 3 || got.Status.Replicas != 3 {
		t.Errorf("scale returns %+v, want 3 and 3", got)
	}
	pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{LabelSelector: got.Status.Selector})
	if err != nil || got.Status.Selector == "" || len(pods.Items) != 3 {
		t.Errorf("the selector %q finds %d pods, want 3: %v", got.Status.Selector, len(pods.Items), err)
	}
}

// testPrinterColumns checks the columns of kubectl get etcd.
func testPrinterColumns(t *testing.T, w *world) {
	text, err := w.kube.Discovery().RESTClient().Get().
		AbsPath("/apis/etcd.quorate.dev/v1alpha1/namespaces", w.namespace, "etcdclusters", "a").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	cells := map[string]any{}
	var narrow []string
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		}
	}
	if want := []string{"Name", "Ready", "Voters", "Version", "Leader", "Rule", "Age"}; !slices.Equal(narrow, want) {
		t.Errorf("columns %v, want %v", narrow, want)
	}
	s := w.status("a")
	for name, want := range map[string]string{
		"Ready": "True", "Voters": "3/3", "Version": modern, "Leader": s.Leader, "Rule": "Converged", "Cluster-ID": s.ClusterID, "Revision": s.DeclaredRevision,
	} {
		if cells[name] != want {
			t.Errorf("column %s shows %v, want %s", name, cells[name], want)
		}
	}
}

func testStatusCommand(t *testing.T, w *world) {
	r := w.runFrom(outside, "status", "-o", "wide").requireCode(t, exitDone)
	for _, want := range []string{w.namespace + "/a", "Converged", "3 of 3 voters", modern, w.status("a").ClusterID, "a-2"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("quorate status does not contain %s:\n%s", want, r.stdout)
		}
	}
}

// testRestrictedNamespace checks that the cluster's namespace enforces the restricted Pod Security Standard, and that
// containers cannot write to their root file system.
func testRestrictedNamespace(t *testing.T, w *world) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "privileged"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	_, err := w.kube.CoreV1().Pods(w.namespace).Create(w.ctx(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("the namespace accepts any pod: %v", err)
	}
	w.waitForPods("a", 3)
	for _, pod := range w.pods("a") {
		for _, c := range pod.Spec.Containers {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("the root file system of %s in %s can be written", c.Name, pod.Name)
			}
		}
	}
}

// patientWithEtcd is a longer timeout for requests to etcd. In tests that run only one pass, it prevents a member on a
// busy machine from being treated as unresponsive.
var patientWithEtcd = setting("etcd.timeout", "8s")

// requireQuiet runs passes until a pass has nothing to do or report, and returns the result of that pass. API requests
// in that pass must not be rejected.
func (w *world) requireQuiet(cluster string) result {
	w.t.Helper()
	r, requests := w.requireQuietBy("Converged", cluster)
	for _, request := range requests {
		if request.Status >= http.StatusBadRequest {
			w.t.Errorf("a quiet pass makes rejected requests: %s", request)
		}
	}
	return r
}

// requireQuietBy runs passes until a pass writes nothing, and returns the result and the requests of that pass. Every
// pass must apply the given rule. For a while after a bootstrap, an upgrade or many writes, the database size still
// changes, and each change is written to the status.
func (w *world) requireQuietBy(rule, cluster string) (r result, requests []faultproxy.Request) {
	w.t.Helper()
	proxy := w.newProxy()
	eventually(w.t, "a pass that writes nothing", func() error {
		proxy.Break(nil)
		r = w.runFrom(through(proxy), "run", "--detailed-exitcode", patientWithEtcd).requireCode(w.t, exitDone).requireRule(w.t, cluster, rule)
		if writes := proxy.Writes(); len(writes) > 0 {
			return fmt.Errorf("it writes %v", writes)
		}
		return nil
	})
	return r, proxy.Requests()
}

// testQuietPass checks that passes over a converged cluster do not write anything. On a busy machine, an earlier pass
// may have reported a member as unresponsive, and the database size may still change. The next pass corrects the status.
func testQuietPass(t *testing.T, w *world) {
	eventually(t, "passes and a plan write nothing", func() error {
		_, requests := w.requireQuietBy("Converged", "a")
		t.Logf("a quiet pass over one cluster: %d requests", len(requests))
		before := w.resource("a").GetResourceVersion()
		proxy := w.newProxy()
		w.runFrom(through(proxy), "run", "--detailed-exitcode", patientWithEtcd).requireCode(t, exitDone)
		w.runFrom(inside, "run", "--detailed-exitcode", patientWithEtcd).requireCode(t, exitDone)
		w.runFrom(outside, "plan", "--detailed-exitcode", patientWithEtcd).requireCode(t, exitDone)
		if writes := proxy.Writes(); len(writes) > 0 {
			return fmt.Errorf("a quiet pass wrote %v", writes)
		}
		if after := w.resource("a").GetResourceVersion(); after != before {
			return fmt.Errorf("a quiet pass from inside, or a plan, changed the custom resource")
		}
		return nil
	})
}

// testStatusDeleted checks that a status that was deleted manually is restored with the same facts.
func testStatusDeleted(t *testing.T, w *world) {
	before := w.status("a")
	_, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Patch(w.ctx(), "a", "application/json-patch+json",
		[]byte(`[{"op":"remove","path":"/status"}]`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if s := w.status("a"); s.ClusterID != "" {
		t.Fatalf("the status was not deleted: %+v", s)
	}
	w.converge()
	after := w.status("a")
	if after.ClusterID != before.ClusterID || after.Voters != before.Voters || len(after.Members) != len(before.Members) || len(after.Conditions) != len(before.Conditions) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	w.requireCondition("a", "Ready", "True", "Converged")
	w.requireQuiet("a")
}
