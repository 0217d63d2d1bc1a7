package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSeveralSandboxes checks that one run covers two Kubernetes clusters, each a sandbox, from one repository with a
// directory for each. While the API server of one cluster is not responding, the other cluster is changed. Once that
// API server responds again, the declared changes are also made in its cluster.
func TestSeveralSandboxes(t *testing.T) {
	t.Parallel()
	eu := newWorld(t)
	us := eu.beside(secondSandbox(t))
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	text := fmt.Sprintf("clusters:\n- {name: eu, kubeconfig: %s, path: clusters/eu}\n- {name: us, kubeconfig: %s, path: clusters/us}\n", eu.kubeconfig, us.kubeconfig)
	if err := os.WriteFile(fleet, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	declare := func(size string) {
		eu.repository.push(map[string]string{
			"clusters/eu/a.yaml": declaration("a", modern, size),
			"clusters/us/a.yaml": declaration("a", modern, size),
			"clusters/us/b.yaml": declaration("b", modern, one, plain),
		})
	}
	run := func(timeout string) result {
		return eu.run("--fleet", fleet, "--until-converged", "--timeout", timeout, setting("kubernetes.leaseDuration", "3s"))
	}

	declare(one)
	run(patience.String()).requireCode(t, exitDone).requireIn(t, "eu a Converged", "us a Converged", "us b Converged")
	ids := map[*world]string{eu: eu.requireOneCluster("a", 1), us: us.requireOneCluster("a", 1)}
	us.requireOneCluster("b", 1)
	if ids[eu] == ids[us] {
		t.Errorf("clusters with the same name in two Kubernetes clusters are treated as one: %s", ids[eu])
	}
	if _, err := eu.object(etcdclusters, "b"); err == nil {
		t.Error("a cluster declared for us is created in eu")
	}

	goOn := us.stopAPIServer()
	declare(three)
	r := run("20s").requireCode(t, exitError)
	for began := time.Now(); r.cluster("a").Decision.Rule != "Converged" && time.Since(began) < patience; {
		r = run("20s").requireCode(t, exitError)
	}
	goOn()
	r.requireIn(t, "eu a Converged")
	if !strings.Contains(r.report.Error, "us: ") || strings.Contains(r.report.Error, "eu: ") {
		t.Errorf("the report does not contain that us is unreachable, or it contains that eu is:\n%s", r)
	}
	if id := eu.requireOneCluster("a", 3); id != ids[eu] {
		t.Errorf("cluster %s in eu became %s", ids[eu], id)
	}
	t.Logf("the run without us took %s", r.took.Round(time.Millisecond))
	if id := us.requireOneCluster("a", 1); id != ids[us] {
		t.Errorf("cluster %s in us became %s while its API server was unreachable", ids[us], id)
	}

	run(patience.String()).requireCode(t, exitDone).requireIn(t, "eu a Converged", "us a Converged", "us b Converged")
	for w, id := range ids {
		if now := w.requireOneCluster("a", 3); now != id {
			t.Errorf("cluster %s became %s", id, now)
		}
	}
}

// requireIn requires that the report has exactly these clusters, each as KUBERNETES NAME RULE.
func (r result) requireIn(t testing.TB, want ...string) result {
	t.Helper()
	var got []string
	for _, c := range r.report.Clusters {
		got = append(got, c.Kubernetes+" "+c.Name+" "+c.Decision.Rule)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Fatalf("the report has %q, want %q:\n%s", got, want, r)
	}
	return r
}

// secondSandbox brings up a sandbox of one node in addition to the shared one, and stops it at the end of the
// test. Both sandboxes use the same addresses, in separate networks.
func secondSandbox(t testing.TB) *sandbox {
	t.Helper()
	second := &sandbox{name: node.name + "-2"}
	if err := second.down(); err != nil { // left by an interrupted test
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.down(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	if err := second.start("--nodes=1"); err != nil {
		t.Fatal(err)
	}
	t.Logf("a second sandbox was up after %s", time.Since(began).Round(time.Millisecond))
	return second
}

// beside returns the same world in another sandbox: a namespace with the same name, and the same repository.
func (w *world) beside(s *sandbox) *world {
	w.t.Helper()
	other := &world{sandbox: s, t: w.t, namespace: w.namespace, repository: w.repository, source: w.source}
	other.enter()
	return other
}

// stopAPIServer makes the API server accept connections without responding, until the returned function is
// called.
func (w *world) stopAPIServer() (goOn func()) {
	w.t.Helper()
	process, err := w.apiServer()
	if err == nil {
		err = syscall.Kill(process, syscall.SIGSTOP)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	goOn = func() { _ = syscall.Kill(process, syscall.SIGCONT) }
	w.t.Cleanup(goOn)
	return goOn
}

// apiServer returns the PID of the API server: a child of the control plane's init, which is a process of this
// machine.
func (s *sandbox) apiServer() (int, error) {
	out, err := exec.Command(binary("sandbox"), "status", "--name", s.name, "--output", "json").Output()
	if err != nil {
		return 0, fmt.Errorf("ask for the status of sandbox %s: %w", s.name, err)
	}
	var status struct {
		Machines []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return 0, fmt.Errorf("read the status of sandbox %s: %w", s.name, err)
	}
	for _, m := range status.Machines {
		if m.Name != "control-plane" {
			continue
		}
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", m.PID))
		for _, path := range children {
			list, _ := os.ReadFile(path)
			for _, child := range bytes.Fields(list) {
				if line, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", child)); bytes.Contains(bytes.SplitN(line, []byte{0}, 2)[0], []byte("kube-apiserver")) {
					return strconv.Atoi(string(child))
				}
			}
		}
	}
	return 0, fmt.Errorf("sandbox %s has no API server", s.name)
}
