package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube/kubetest"
)

// declaredFleet is a directory that declares clusters, with a real API server that does not run pods.
type declaredFleet struct {
	*testing.T
	server     *kubetest.Server
	dir        string
	kubeconfig string
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "SERVER", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: TOKEN}}]
`

func newFleet(t *testing.T) *declaredFleet {
	t.Helper()
	f := &declaredFleet{T: t, server: kubetest.Shared(t, installCRD), dir: t.TempDir(), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	text := strings.NewReplacer("SERVER", f.server.Config.Host, "TOKEN", f.server.Config.BearerToken).Replace(kubeconfig)
	if err := os.WriteFile(f.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := f.quorate("install"); code != exitOK {
		t.Fatal(said)
	}
	return f
}

// quorate runs a command line in this process, and returns its exit code and output.
func (f *declaredFleet) quorate(args ...string) (code int, said string) {
	f.Helper()
	var out, err strings.Builder
	code = execute(f.Context(), append(slices.Clone(args), "--kubeconfig", f.kubeconfig), streams{&out, &err})
	return code, out.String() + err.String()
}

// declare replaces the declarations in the subdirectory clusters with the given clusters.
func (f *declaredFleet) declare(names ...string) {
	f.Helper()
	path := filepath.Join(f.dir, "clusters")
	if err := os.MkdirAll(filepath.Join(f.dir, "none"), 0o700); err != nil {
		f.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		f.Fatal(err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text := "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + "}\nspec: {version: 3.6.16, replicas: 1}\n"
		if err := os.WriteFile(filepath.Join(path, name+".yaml"), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
}

// pass runs a command over the fleet, and requires the given exit code and the given held clusters in the report.
func (f *declaredFleet) pass(command string, code int, held []string, args ...string) string {
	f.Helper()
	timeout := "15s" // a run uses all of this time
	switch {
	case command == "plan":
		timeout = "1m"
	case slices.Contains(args, "--until-converged"):
		timeout = "10s"
	}
	got, said := f.quorate(append([]string{command, "--source", f.dir, "--path", "clusters", "--etcd-access", "direct", "--log-level", "error", "--timeout", timeout, "-o", "json"}, args...)...)
	var rep struct {
		Removals []struct {
			Revision string
			Clusters []string
		}
	}
	// Log lines may follow the report, for example about a request to the API server that was in progress when the time
	// ran out.
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&rep); err != nil {
		f.Fatalf("%v:\n%s", err, said)
	}
	var names []string
	for _, r := range rep.Removals {
		names = append(names, r.Clusters...)
	}
	if got != code || !slices.Equal(names, held) {
		f.Fatalf("%s %v: exit code %d, want %d; held %q, want %q\n%s", command, args, got, code, names, held, said)
	}
	return said
}

func (f *declaredFleet) events(reason string) int {
	f.Helper()
	list, err := f.server.Client.EventsV1().Events("default").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	n := 0
	for _, e := range list.Items {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// TestRemovalsAreHeld checks that clusters that a source no longer declares are not changed until the removal is
// confirmed, regardless of what else the source declares.
func TestRemovalsAreHeld(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.declare()
	if said := f.pass("run", exitOK, nil); !strings.Contains(said, "does not declare any clusters") {
		t.Errorf("an empty source is not mentioned:\n%s", said)
	}
	f.declare("a", "b", "c")
	f.pass("run", exitNotConverged, nil) // without nodes, pods do not start, and each run uses up its time

	f.declare()
	all := []string{"default/a", "default/b", "default/c"}
	f.pass("plan", exitBlocked, all)
	if n := f.events("RemovalHeld"); n != 0 {
		t.Errorf("a plan has reported %d removals", n)
	}
	for range 2 {
		f.pass("run", exitBlocked, all)
	}
	if n := f.events("RemovalHeld"); n != len(all) {
		t.Errorf("%d events, want one for each cluster", n)
	}
	f.pass("run", exitBlocked, all, "--path", "none")
	another := strings.Repeat("0", 40)
	for _, command := range []string{"plan", "run"} {
		const want = "--confirm-removals names ANOTHER, but the held clusters were removed at directory, so none of them is confirmed"
		if said := f.pass(command, exitBlocked, all, "--confirm-removals", another); strings.Count(said, strings.Replace(want, "ANOTHER", another, 1)) != 1 {
			t.Errorf("%s: it is not reported that a different revision is confirmed:\n%s", command, said)
		}
	}

	// The removals are still held after other clusters have been bootstrapped.
	f.declare("c", "d", "e", "f")
	f.pass("run", exitBlocked, all[:2])
	f.pass("run", exitBlocked, all[:2])

	f.pass("plan", exitOK, nil, "--confirm-removals", "directory")
	said := f.pass("run", exitNotConverged, nil, "--confirm-removals", "directory")
	if strings.Count(said, `"Orphaned"`) != 2 {
		t.Errorf("a and b are not orphans:\n%s", said)
	}
	if said := f.pass("run", exitNotConverged, nil, "--confirm-removals", another); strings.Contains(said, "names "+another) {
		t.Errorf("nothing is held, but it is mentioned:\n%s", said)
	}

	// If only one of four clusters is removed, that cluster is an orphan immediately.
	f.declare("c", "d", "e")
	if said := f.pass("run", exitNotConverged, nil); strings.Count(said, `"Orphaned"`) != 3 {
		t.Errorf("f is not an orphan:\n%s", said)
	}
}
