package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// output returns what a command says that ends well.
func (w *tenants) output(args ...string) string {
	w.Helper()
	got := w.command(args...)
	if got.code != exitOK {
		w.Fatalf("%q: exit code %d: %s", args, got.code, got.err)
	}
	return got.out
}

// What runs Quorate is installed in each mode, one after the other, and deleted; clusters are left alone.
func TestInstallOnAnAPIServer(t *testing.T) {
	w := newTenants(t, "own")
	w.made("own/one")
	before := w.cluster("own/one")
	for mode, workload := range map[string]string{
		"cronjob": "CronJob quorate-system/quorate", "loop": "Deployment quorate-system/quorate", "indexed-job": "CronJob quorate-system/quorate",
	} {
		args := []string{"install", "--mode", mode, "--image", "registry.example.com/quorate:1", "--source", "https://git.example.com/fleet.git"}
		if said := w.output(append(args, "--path", mode)...); !strings.Contains(said, "applied "+workload+"\n") {
			t.Errorf("%s says\n%s", mode, said)
		}
		if said := w.output(append(args, "--path", mode)...); strings.Contains(said, "deleted ") {
			t.Errorf("%s once more says\n%s", mode, said)
		}
		there := strings.Split(strings.TrimSpace(w.output("uninstall", "--print")), "\n")
		if jobs := slices.DeleteFunc(slices.Clone(there), func(o string) bool { return !strings.HasSuffix(o, "quorate-system/quorate") }); len(jobs) != 2 ||
			!slices.Contains(jobs, workload) || !slices.Contains(jobs, "ServiceAccount quorate-system/quorate") {
			t.Errorf("in mode %s there are %q", mode, there)
		}
	}
	if said := w.output("uninstall"); !strings.HasPrefix(said, "deleted CronJob quorate-system/quorate\n") && !strings.HasPrefix(said, "deleted Deployment ") || strings.Count(said, "ConfigMap quorate-system/quorate-source-") != 3 || !strings.Contains(said, "deleted ClusterRole quorate\n") {
		t.Errorf("uninstall says\n%s", said)
	}
	if there := w.output("uninstall", "--print") + w.output("uninstall"); there != "" {
		t.Errorf("it leaves\n%s", there)
	}
	if after := w.cluster("own/one"); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a cluster has changed:\n%+v\n%+v", before, after)
	}
	if _, err := w.server.Client.CoreV1().Namespaces().Get(context.Background(), "quorate-system", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
