package scenarios

import (
	"strings"
	"testing"
)

// TestSources pushes through git's own smart HTTP server and reads by branch, tag and commit, from a path, and through a kustomization.
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
	for _, source := range []string{url, w.repository.bare} {
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
	w.run("--path", "clusters/test", "--tag", "v1").requireCode(t, exitDone)
	if got := w.resource("a").Object["spec"].(map[string]any)["replicas"]; got != int64(1) {
		t.Errorf("the kustomization asks for 1 replica, the custom resource has %v", got)
	}
	if r := w.run("--path", "broken", "--tag", "v1").requireCode(t, exitInvalid); !r.says("b.yaml") {
		t.Errorf("quorate does not say which file is broken:\n%s", r)
	}
}
