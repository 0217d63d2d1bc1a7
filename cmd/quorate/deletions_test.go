package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// declareDeleted declares that the given clusters are to be deleted with their data.
func (f *declaredFleet) declareDeleted(names ...string) {
	f.Helper()
	for _, name := range names {
		path := filepath.Join(f.dir, "clusters", name+".yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), "replicas: 1", "replicas: 1, lifecycle: Deleted, storage: {retention: Delete}", 1))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			f.Fatal(err)
		}
	}
}

// waiting runs a command over the fleet and returns the clusters whose deletion is waiting.
func (f *declaredFleet) waiting(command string, code int, args ...string) (names []string) {
	f.Helper()
	said := f.pass(command, code, nil, args...)
	var rep struct {
		Clusters []struct {
			Name     string
			Decision struct{ Rule, Verdict, Message string }
		}
	}
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&rep); err != nil { // log lines may follow
		f.Fatal(err)
	}
	for _, c := range rep.Clusters {
		if c.Decision.Verdict == "Block" && strings.Contains(c.Decision.Message, "--max-deletions") {
			names = append(names, c.Name)
		}
	}
	return names
}

// deleted returns the clusters that will be deleted with their data, according to the API server.
func (f *declaredFleet) deleted() (names []string) {
	f.Helper()
	const path = "/apis/etcd.quorate.dev/v1alpha1/namespaces/default/etcdclusters"
	said, err := f.server.Client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	var list v1alpha1.EtcdClusterList
	if err := json.Unmarshal(said, &list); err != nil {
		f.Fatal(err)
	}
	for _, item := range list.Items {
		if item.Spec.Lifecycle == v1alpha1.LifecycleDeleted {
			names = append(names, item.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestRunStartsAtMostMaxDeletions checks that a run starts to delete at most --max-deletions clusters with their data,
// one by default. The other clusters keep the last applied state.
func TestRunStartsAtMostMaxDeletions(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.declare("a", "b", "c", "d")
	f.pass("run", exitNotConverged, nil)
	f.declareDeleted("a", "b", "c")
	steps := []struct {
		command          string
		args             []string
		waiting, deleted []string
	}{
		{"plan", nil, []string{"b", "c"}, nil},
		{"plan", []string{"--max-deletions", "3"}, nil, nil},
		{"run", []string{"--max-deletions", "0"}, []string{"a", "b", "c"}, nil},
		{"run", nil, []string{"b", "c"}, []string{"a"}},
		{"run", []string{"--until-converged"}, []string{"c"}, []string{"a", "b"}}, // the limit is per run, not per pass
		{"run", []string{"--max-deletions", "5"}, nil, []string{"a", "b", "c"}},
	}
	for _, step := range steps {
		code := exitInvalid
		switch {
		case step.waiting != nil:
		case step.command == "plan":
			code = exitOK
		default:
			code = exitNotConverged // d is still being bootstrapped
		}
		if got := f.waiting(step.command, code, step.args...); !slices.Equal(got, step.waiting) {
			t.Errorf("%s %v: %q wait, want %q", step.command, step.args, got, step.waiting)
		}
		if got := f.deleted(); !slices.Equal(got, step.deleted) {
			t.Errorf("%s %v: %q are deleted, want %q", step.command, step.args, got, step.deleted)
		}
	}
}
