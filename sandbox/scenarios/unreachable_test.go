package scenarios

import (
	"path/filepath"
	"testing"
)

// testGitUnreachable checks that, while git is unreachable, the last applied spec is used, drift is repaired from that
// spec, and the problem is reported everywhere.
func testGitUnreachable(t *testing.T, w *world) {
	url, server := w.repository.serve()
	w.source = url
	w.converge()
	want := w.snapshot()
	server.Close()

	w.disturb(disturbance{"budget deleted", budgets, "a", ""})
	r := w.run().requireCode(t, exitError)
	if r.report.Error == "" {
		t.Errorf("the report does not contain that git cannot be read:\n%s", r)
	}
	w.requireCondition("a", "SourceReady", "False", "")
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("the drift is not repaired: %s", wrong)
	}
	for name, source := range map[string]string{
		"no such repository": filepath.Join(t.TempDir(), "none.git"),
		"no such host":       "http://127.0.0.1:1/clusters.git",
	} {
		w.source = source
		if r := w.run(); r.code != exitError && r.code != exitInvalid {
			t.Errorf("%s: %s", name, r)
		}
	}
	w.source = w.repository.bare
	if r := w.run("--branch", "none"); r.code != exitError {
		t.Errorf("no such branch: %s", r)
	}
	w.requireOneCluster("a", 3)
	w.converge()
	w.requireCondition("a", "SourceReady", "True", "")
	w.requireQuiet("a")
}

// testSuspend checks that a suspended cluster is observed and left unchanged.
func testSuspend(t *testing.T, w *world) {
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three, "suspend: true")})
	w.converge().requireRule(t, "a", "Suspended")
	w.disturb(disturbance{"budget deleted", budgets, "a", ""})
	w.run().requireCode(t, exitDone).requireRule(t, "a", "Suspended")
	if _, err := w.object(budgets, "a"); err == nil {
		t.Error("an object of a suspended cluster was repaired")
	}
	w.requireQuietBy("Suspended", "a")
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.converge().requireRule(t, "a", "Converged")
	if _, err := w.object(budgets, "a"); err != nil {
		t.Error(err)
	}
}
