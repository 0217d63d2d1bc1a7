package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// tenants is a group of tenants that share a run. Each tenant has its own repository. Their clusters are declared as
// stopped, so that a pass only processes declarations.
type tenants struct {
	*testing.T
	server     *kubetest.Server
	client     *kube.Client
	kubeconfig string
	dir        string
}

// newTenants returns tenants on an API server that other tests use later.
func newTenants(t *testing.T, namespaces ...string) *tenants {
	t.Helper()
	return newTenantsOn(t, kubetest.Shared(t, installCRD), namespaces...)
}

func installCRD(server *kubetest.Server) error {
	client, err := kube.New(server.Config)
	if err != nil {
		return err
	}
	return client.InstallCRD(context.Background(), crd.YAML)
}

// newTenantsOn returns tenants on an API server that has the CustomResourceDefinition.
func newTenantsOn(t *testing.T, server *kubetest.Server, namespaces ...string) *tenants {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	client, err := kube.New(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := server.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w := &tenants{T: t, server: server, client: client, dir: t.TempDir()}
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig")
	w.write("kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %s}}]}",
		server.Config.Host, server.Config.BearerToken))
	return w
}

func (w *tenants) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// repository returns the path of a tenant's repository. The path represents information that other tenants must not
// see.
func (w *tenants) repository(tenant string) string {
	return filepath.Join(w.dir, "private-to-"+tenant)
}

func (w *tenants) git(tenant string, args ...string) string {
	w.Helper()
	c := exec.CommandContext(w.Context(), "git", args...)
	c.Dir = w.repository(tenant)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@localhost", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@localhost")
	out, err := c.CombinedOutput()
	if err != nil {
		w.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits a declaration of exactly the given clusters, given as namespace/name, and returns the commit. Any
// argument that is not a name is used as the content of a file.
func (w *tenants) push(tenant string, declared ...string) string {
	w.Helper()
	dir := w.repository(tenant)
	if _, err := os.Stat(dir); err != nil {
		w.write("private-to-"+tenant+"/README", "")
		w.git(tenant, "init", "--quiet", "--initial-branch=main", ".")
	}
	if err := os.RemoveAll(filepath.Join(dir, "declared")); err != nil {
		w.Fatal(err)
	}
	for i, what := range declared {
		if namespace, name, ok := strings.Cut(what, "/"); ok && !strings.ContainsAny(what, " \n") {
			what = fmt.Sprintf("apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: %s, namespace: %s}\n"+
				"spec: {version: 3.6.16, lifecycle: Stopped}\n", name, namespace)
		}
		w.write(fmt.Sprintf("private-to-%s/declared/%d.yaml", tenant, i), what)
	}
	w.git(tenant, "add", "--all", ".")
	w.git(tenant, "commit", "--quiet", "--allow-empty", "-m", "x")
	return w.git(tenant, "rev-parse", "HEAD")
}

// made creates clusters that have formed and are now stopped. Their status does not name a source.
func (w *tenants) made(clusters ...string) {
	w.Helper()
	for _, cluster := range clusters {
		namespace, name, _ := strings.Cut(cluster, "/")
		live, err := w.client.ApplyCluster(w.Context(), map[string]any{
			"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster",
			"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"app.kubernetes.io/managed-by": "quorate"}},
			"spec":     map[string]any{"version": "3.6.16", "lifecycle": "Stopped"},
		}, nil)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := w.client.ApplyStatus(w.Context(), live, v1alpha1.EtcdClusterStatus{ClusterID: idOf(cluster)}); err != nil {
			w.Fatal(err)
		}
	}
}

// idOf returns a unique cluster ID.
func idOf(cluster string) string { return fmt.Sprintf("%x", cluster) }

// ran is the exit code and the output of a run.
type ran struct {
	code     int
	out, err string
}

func (w *tenants) run(args ...string) ran {
	w.Helper()
	return w.command(append([]string{"run"}, args...)...)
}

// command runs a command with the given arguments and the kubeconfig.
func (w *tenants) command(args ...string) ran {
	w.Helper()
	return w.bare(append(args, "--kubeconfig", w.kubeconfig)...)
}

// bare runs a command with exactly the given arguments.
func (w *tenants) bare(args ...string) ran {
	w.Helper()
	var out, stderr bytes.Buffer
	code := execute(w.Context(), withSettings(w.T, args...), streams{out: &out, err: &stderr})
	return ran{code, out.String(), stderr.String()}
}

// sources returns the flags for a run over the sources of the given tenants.
func (w *tenants) sources(tenants ...string) []string {
	var args []string
	for _, tenant := range tenants {
		args = append(args, "--source", w.repository(tenant))
	}
	return args
}

// cluster returns the custom resource with the given name, or nil if it does not exist.
func (w *tenants) cluster(name string) *v1alpha1.EtcdCluster {
	w.Helper()
	return w.listed("").Of(inventory.ParseKey(name)).Custom
}

// listed returns the clusters in a namespace, or in all namespaces.
func (w *tenants) listed(namespace string) inventory.ByCluster {
	w.Helper()
	sorter := inventory.NewSorter(inventory.AnyCluster)
	if _, err := w.client.List(w.Context(), namespace, "app.kubernetes.io/managed-by=quorate", sorter); err != nil {
		w.Fatal(err)
	}
	return sorter.Listed()
}

// condition returns a condition of a cluster as "Type=Status message", or "" if the cluster has no such condition.
func (w *tenants) condition(name, kind string) string {
	w.Helper()
	c := w.cluster(name)
	if c == nil {
		w.Fatalf("no cluster %s", name)
	}
	condition := meta.FindStatusCondition(c.Status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s=%s %s", kind, condition.Status, condition.Message)
}
