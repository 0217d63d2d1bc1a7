package clusters

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// differ fails the test unless the changes, formatted as report lines, are exactly want.
func (s *stage) differ(next decide.Action, want ...string) {
	s.Helper()
	c := s.observe()
	changes, err := c.Changes(next)
	if err != nil {
		s.Fatal(err)
	}
	got := report.Cluster{Changes: changes}.Lines()
	if !slices.Equal(got, want) {
		s.Errorf("it differs by\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if len(changes) > 0 {
		s.tellsNoSecret(changes)
	}
}

// tellsNoSecret fails the test if the changes contain a value from a Secret.
func (s *stage) tellsNoSecret(changes []report.Change) {
	s.Helper()
	told, err := json.Marshal(changes)
	if err != nil {
		s.Fatal(err)
	}
	secrets, err := s.server.Client.CoreV1().Secrets("default").List(s.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) == 0 {
		s.Fatalf("%d Secrets: %v", len(secrets.Items), err)
	}
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			line := strings.SplitN(string(value), "\n", 3)
			if len(line) > 1 && strings.Contains(string(told), line[1]) || strings.Contains(string(told), base64.StdEncoding.EncodeToString(value)) {
				s.Errorf("%s of %s is visible in %s", key, secret.Name, told)
			}
		}
	}
	if strings.Contains(string(told), "tampered") {
		s.Errorf("the content of a Secret is visible in %s", told)
	}
}

// edit changes an object as a different field manager.
func (s *stage) edit(kind, name, patch string) {
	s.Helper()
	var err error
	core, o := s.server.Client.CoreV1(), metav1.PatchOptions{FieldManager: "kubectl-edit"}
	switch kind {
	case "ConfigMap":
		_, err = core.ConfigMaps("default").Patch(s.Context(), name, types.MergePatchType, []byte(patch), o)
	case "Service":
		_, err = core.Services("default").Patch(s.Context(), name, types.MergePatchType, []byte(patch), o)
	case "PodDisruptionBudget":
		_, err = s.server.Client.PolicyV1().PodDisruptionBudgets("default").Patch(s.Context(), name, types.MergePatchType, []byte(patch), o)
	case "StatefulSet":
		_, err = s.server.Client.AppsV1().StatefulSets("default").Patch(s.Context(), name, types.StrategicMergePatchType, []byte(patch), o)
	default:
		s.Fatal(kind)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// TestChanges checks that a plan shows exactly the changes that would be sent to the API server: changes to the
// declaration, and to objects that were modified, were deleted, or are no longer declared. For Secrets, the plan shows
// only that they change.
func TestChanges(t *testing.T) {
	s := newStage(t)
	s.differ(nil) // not bootstrapped yet
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.makePods()
	s.differ(nil)

	plain := s.spec
	s.spec = "version: 3.7.3, replicas: 5, etcd: {quota: 1Gi}"
	s.differ(nil, "spec.etcd.quota: none -> 1Gi", "spec.replicas: 3 -> 5", "spec.version: 3.6.16 -> 3.7.3",
		"PodDisruptionBudget a spec.minAvailable: 2 -> 3")
	s.spec = plain + ", networkPolicy: {clients: [{pods: {app: web}}]}"
	s.differ(nil, `spec.networkPolicy.clients: none -> [{"pods":{"app":"web"}}]`, "NetworkPolicy a: will be created")
	s.do(s.observe(), decide.ApplyObjects{}, true)
	s.spec = plain
	s.differ(nil, `spec.networkPolicy.clients: [{"pods":{"app":"web"}}] -> none`, "NetworkPolicy a: deleted")
	s.do(s.observe(), decide.ApplyObjects{}, true)
	s.differ(nil)
	s.asInTutorial()
	s.tamper()
	s.do(s.observe(), decide.ApplyObjects{}, true)
	s.differ(nil)
	s.showRollout()
}

// tamper changes fields that Quorate owns and fields that it does not own.
func (s *stage) tamper() {
	s.edit("PodDisruptionBudget", "a", `{"spec":{"minAvailable":1}}`)
	s.edit("Service", "a", `{"metadata":{"annotations":{"theirs":"stays"}},"spec":{"publishNotReadyAddresses":null}}`)
	s.edit("StatefulSet", "a", `{"spec":{"template":{"spec":{"containers":[{"name":"etcd","image":"elsewhere\u001b[31m"}]}}}}`)
	s.put("a-client-tls", map[string][]byte{"tls.crt": []byte("tampered\ntampered\n"), "tls.key": []byte("tampered\ntampered\n")})
	err := s.server.Client.CoreV1().Services("default").Delete(s.Context(), "a-client", metav1.DeleteOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.differ(nil,
		"Secret a-client-tls: changed; values are not shown",
		"Service a spec.publishNotReadyAddresses: none -> true",
		"Service a-client: will be created",
		"PodDisruptionBudget a spec.minAvailable: 1 -> 2",
		"StatefulSet a spec.template.spec.containers[etcd].image: elsewhere\\x1b[31m -> gcr.io/etcd-development/etcd:v3.6.16",
	)
}

// showRollout checks that the changes to new pods are shown if a rollout is next.
func (s *stage) showRollout() {
	s.spec = "version: 3.7.3"
	s.do(s.observe(), decide.Declare{}, true)
	s.differ(nil)
	c := s.observe()
	declared := objects.DeclaredTemplate(&c.target.Cluster)
	changes, err := c.Changes(decide.StartRollout{Version: declared.Version, SpecHash: declared.SpecHash})
	if err != nil {
		s.Fatal(err)
	}
	lines := strings.Join(report.Cluster{Changes: changes}.Lines(), "\n")
	if !strings.Contains(lines, "containers[etcd].image: gcr.io/etcd-development/etcd:v3.6.16 -> gcr.io/etcd-development/etcd:v3.7.3") || !strings.Contains(lines, "ConfigMap a-members data.") {
		s.Errorf("it differs by\n%s", lines)
	}
}

// asInTutorial checks the changes that docs/tutorial.md shows for scaling up a cluster and for deleting it.
func (s *stage) asInTutorial() {
	plain := s.spec
	s.spec = plain + ", replicas: 5"
	c := s.observe()
	c.state.Membership = decide.Membership{Known: true, ClusterID: 0xc1}
	for n := range 3 {
		c.state.Membership.Members = append(c.state.Membership.Members, decide.Member{
			ID: decide.ID(n + 1), Name: objects.PodName("a", n), PeerURL: objects.PeerURL(&c.target.Cluster, n), Started: true,
			Answers: true, Leader: n == 0, Version: "3.6.16", DBSize: 20 << 10,
		})
	}
	if err := c.compare(s.Context()); err != nil {
		s.Fatal(err)
	}
	changes, err := c.Changes(nil)
	want := []string{"spec.replicas: 3 -> 5", "ConfigMap a-members data.record.yaml: none -> joinedTogether: true",
		"PodDisruptionBudget a spec.minAvailable: 2 -> 3"}
	if got := (report.Cluster{Changes: changes}).Lines(); err != nil || !slices.Equal(got, want) {
		s.Errorf("%v, it differs by\n\t%s", err, strings.Join(got, "\n\t"))
	}
	s.spec = plain + ", lifecycle: Deleted, storage: {retention: Delete}"
	s.differ(nil, "spec.lifecycle: Running -> Deleted", "spec.storage.retention: Retain -> Delete", "StatefulSet a spec.replicas: 3 -> 0")
	s.spec = plain
}
