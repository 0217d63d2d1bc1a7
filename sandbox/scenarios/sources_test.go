package scenarios

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestSources pushes through git's own smart HTTP server and reads by branch, tag and commit, from a path, and
// through a kustomization. It also reads a sparse worktree of a clone that borrows its objects.
func TestSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.repository.push(map[string]string{
		"clusters/base/a.yaml":             declaration("a", modern, unschedulable),
		"clusters/base/kustomization.yaml": "resources: [a.yaml]\n",
		"clusters/test/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |-\n    - {op: add, path: /spec/replicas, value: 1}\n  target: {kind: EtcdCluster}\n",
		"broken/b.yaml":                    "kind: EtcdCluster\nspec: [",
	})
	w.repository.git(w.repository.work, "tag", "v1")
	w.repository.git(w.repository.work, "push", "--quiet", "origin", "v1", "HEAD:refs/heads/release")
	second := w.repository.push(map[string]string{"clusters/test/a.yaml": declaration("b", modern, one, unschedulable)})

	url, _ := w.repository.serve()
	for _, source := range []string{url, w.repository.bare, w.repository.sparseWorktree()} {
		w.source = source
		for _, test := range []struct {
			args     []string
			revision string
			cluster  string
		}{
			{[]string{"--tag", "v1"}, "v1@sha1:" + first, "a"},
			{[]string{"--branch", "release"}, "release@sha1:" + first, "a"},
			{[]string{"--commit", first}, first, "a"},
			{nil, "main@sha1:" + second, "b"},
		} {
			r := w.runFrom(outside, append([]string{"plan", "--path", "clusters/test"}, test.args...)...).requireCode(t, exitDone)
			if !strings.Contains(r.report.Revision, test.revision) || len(r.report.Clusters) != 1 || r.report.Clusters[0].Name != test.cluster {
				t.Errorf("%v of %s: want cluster %s of revision %s:\n%s", test.args, source, test.cluster, test.revision, r)
			}
		}
	}
	w.source = url
	w.runUntilWaiting(outside, "--path", "clusters/test", setting("sourceDefaults.tag", "v1")).requireCode(t, exitNotConverged)
	if got := w.resource("a").Object["spec"].(map[string]any)["replicas"]; got != int64(1) {
		t.Errorf("the kustomization asks for 1 replica, the custom resource has %v", got)
	}
	if r := w.run("--path", "broken", setting("sourceDefaults.tag", "v1")).requireCode(t, exitInvalid); !r.says("b.yaml") {
		t.Errorf("quorate does not report which file is broken:\n%s", r)
	}
}

// TestSeveralSources checks that the clusters of one source are still reconciled while another source cannot be read.
// The clusters of the unreadable source keep running, even if their last applied specs are no longer allowed.
func TestSeveralSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, plain, one)})
	other := newRepository(t)
	other.push(map[string]string{"apps/b.yaml": declaration("b", modern, plain, one)})
	url, server := other.serve()
	both := []string{"--source", url + ",path=apps"}
	w.converge(both...)
	w.requireOneCluster("a", 1)
	b := w.requireOneCluster("b", 1)

	server.Close()
	w.declare(modern, plain, one, otherOptions)
	w.deletePod("b-0")
	r := w.runFrom(outside, append([]string{"run", "--until-converged", "--timeout", patience.String()}, both...)...).requireCode(t, exitError)
	r.requireRule(t, "a", "Converged").requireRule(t, "b", "Converged")
	w.requireCondition("a", "SourceReady", "True", "Fetched")
	w.requireCondition("b", "SourceReady", "False", "FetchFailed")
	if got := w.requireOneCluster("b", 1); got != b {
		t.Errorf("cluster %s became %s", b, got)
	}
	if why := w.status("b").condition("Orphaned"); why.Type != "" {
		t.Errorf("b is called an orphan while its source cannot be read: %s", why.Message)
	}

	// The last applied spec is no longer allowed: Kubernetes keeps the cluster running, Quorate does not change it, and
	// other clusters are still reconciled.
	w.declare(modern, plain, one)
	w.deletePod("b-0")
	r = w.runFrom(outside, "run", "--until-converged", "--timeout", patience.String(), "--source", url+",path=apps,allow-image-repository=registry.example.com/etcd").requireCode(t, exitError)
	r.requireRule(t, "a", "Converged").requireRule(t, "b", "InvalidSpec")
	if got := w.requireOneCluster("b", 1); got != b {
		t.Errorf("cluster %s became %s", b, got)
	}
}

// TestClusterAsSource checks that custom resources that another tool syncs can be used as the declarations.
func TestClusterAsSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.source = "cluster"
	w.applyAs("somebody-else", declaration("a", modern, plain, three))
	w.converge().requireRule(t, "a", "Converged")
	id := w.requireOneCluster("a", 3)
	w.applyAs("somebody-else", declaration("a", modern, plain, one))
	w.editDuringApprovedRun(`networkPolicy: {clients: [{cidr: "0.0.0.0/0"}]}`)
	w.applyAs("somebody-else", declaration("a", modern, plain, one))
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 1); got != id {
		t.Errorf("cluster %s became %s", id, got)
	}
	w.requireCondition("a", "SourceReady", "True", "Fetched")
	for _, entry := range w.resource("a").GetManagedFields() {
		if entry.Subresource == "" && entry.Manager != "somebody-else" {
			t.Errorf("%s has written an object of a different owner: %s", entry.Manager, entry.FieldsV1)
		}
	}

	// If the other tool deletes the custom resource, the cluster is deleted, and its volume is kept. The cluster is not
	// recreated.
	if err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Delete(w.ctx(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no pod", func() error {
		if pods := w.podUIDs("a"); len(pods) > 0 {
			return fmt.Errorf("pods %v", pods)
		}
		return nil
	})
	if r := w.converge(); len(r.report.Clusters) > 0 {
		t.Errorf("something is left to do:\n%s", r)
	}
	if volumes := w.volumeUIDs("a"); len(volumes) != 1 {
		t.Errorf("volumes %v", volumes)
	}
	// When the cluster is declared again, it comes back with its data.
	w.applyAs("somebody-else", declaration("a", modern, plain, one))
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 1); got != id {
		t.Errorf("cluster %s came back as %s", id, got)
	}
}

// editDuringApprovedRun starts an approved run that removes two members, and changes the spec of a after the
// first action. The run must stop there.
func (w *world) editDuringApprovedRun(edit string) {
	w.t.Helper()
	plan := w.runFrom(outside, "plan", patientWithEtcd)
	p := w.start(outside, "run", "--until-converged", patientWithEtcd, "--log-level", "info", "--approve", "plan="+plan.report.Digest)
	eventually(w.t, "the run acts", func() error {
		if !strings.Contains(p.stderr.String(), "action=\"RemoveMember") {
			return fmt.Errorf("it has logged %s", p.stderr.String())
		}
		return nil
	})
	w.applyAs("somebody-else", declaration("a", modern, plain, one, edit))
	r := p.wait().requireCode(w.t, exitBlocked).requireRule(w.t, "a", "NotApproved")
	if !r.says("the spec has changed since the plan was approved") {
		w.t.Errorf("%s", r)
	}
	if _, err := w.kube.NetworkingV1().NetworkPolicies(w.namespace).Get(w.ctx(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("the edit was carried out: %v", err)
	}
}

// applyAs applies an object with server-side apply as the given field manager.
func (w *world) applyAs(manager, object string) {
	w.t.Helper()
	var decoded unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(object), &decoded.Object); err != nil {
		w.t.Fatal(err)
	}
	_, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Apply(w.ctx(), decoded.GetName(), &decoded, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestActingAsSomebodyElse checks that a run acts with the rights of the impersonated user, and never with its own
// rights, which are unlimited in this test.
func TestActingAsSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, plain, one)
	user := w.namespace + "-tenant"
	as := []string{"--as", user}
	before := w.snapshot()
	if r := w.run(as...).requireCode(t, exitError); !r.says("forbidden") {
		t.Errorf("a user without rights does not get an error:\n%s", r)
	}
	if touched := difference(before, w.snapshot()); touched != "" {
		t.Errorf("a user without rights has changed %s", touched)
	}
	w.runFrom(outside, "run", "--as", "").requireCode(t, exitInvalid)
	w.grantHere(deployedRole(t), user)
	w.converge(as...).requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 1)
}

// TestRewound pushes a history that lacks the applied commit. It is rejected until it is allowed, and then becomes the
// last applied revision.
func TestRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.repository.push(map[string]string{"a.yaml": declaration("a", modern, plain, one)})
	w.declare(modern, plain, one, otherOptions)
	w.converge().requireRule(t, "a", "Converged")
	before := w.snapshot()

	w.repository.git(w.repository.work, "reset", "--quiet", "--hard", first)
	w.repository.git(w.repository.work, "push", "--quiet", "--force", "origin", "HEAD")
	url, _ := w.repository.serve()
	for _, source := range []string{w.repository.bare, url} {
		w.source = source
		r := w.run().requireCode(t, exitError).requireRule(t, "a", "Converged")
		if !r.says("does not descend from") {
			t.Errorf("the report does not contain the refusal:\n%s", r)
		}
		w.requireCondition("a", "SourceReady", "False", "FetchFailed")
		if touched := difference(before, w.snapshot()); touched != "" {
			t.Errorf("a refused revision changed %s", touched)
		}
	}
	w.runFrom(outside, "plan", "--detailed-exitcode").requireCode(t, exitChanges)
	w.converge("--allow-non-fast-forward").requireRule(t, "a", "Converged")
	w.converge().requireRule(t, "a", "Converged")
	w.requireCondition("a", "SourceReady", "True", "Fetched")
	if difference(before, w.snapshot()) == "" {
		t.Error("the allowed revision was not applied")
	}
}
