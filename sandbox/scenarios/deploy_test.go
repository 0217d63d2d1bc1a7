package scenarios

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	systemNamespace = "quorate-system"
	deployedImage   = "quorate.dev/quorate:scenario"
)

// TestDeploy applies deploy/base as described in docs/how-to/cronjob.md, with quorate's own image. The CronJob's Job
// must bootstrap a cluster that is declared on a git server in the cluster's network. It has only the rights of its
// service account, and reaches etcd over the pod network.
func TestDeploy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serveInside()
	w.repository.push(map[string]string{"clusters/a.yaml": declaration("a", modern, three), "README.md": "not a declaration"})
	w.deploy(url)

	logs := w.runJob("founding")
	w.requireOneCluster("a", 3)
	if !strings.Contains(logs, `"rule":"Bootstrap"`) || !strings.Contains(logs, `"rule":"Converged"`) {
		t.Errorf("the log of the Job does not contain the actions:\n%s", logs)
	}
	w.requireCondition("a", "Ready", "True", "Converged")

	before := w.snapshot()
	w.runJob("quiet")
	if changed := difference(before, w.snapshot()); changed != "" {
		t.Errorf("a second Job changed %s", changed)
	}
	w.readInside()
	w.actAsTenant(url)
	w.changeModes(url)
}

// installed runs quorate install or uninstall, and returns its output.
func (w *world) installed(args ...string) string {
	w.t.Helper()
	command := exec.Command(binary("quorate"), append([]string{args[0], "--kubeconfig", w.kubeconfig}, args[1:]...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// deploy applies an overlay of deploy/base. The CronJob is suspended, so that only manually created Jobs run. Its
// passes are limited to the test's namespace, because other tests have clusters at the same time.
func (w *world) deploy(source string) {
	w.t.Helper()
	w.loadImage()
	w.applyOverlay(source, "")
	w.t.Cleanup(func() { w.kubectl("delete", "namespace", systemNamespace) })
}

// applyOverlay applies the overlay. If component is not empty, the overlay includes this component of deploy.
func (w *world) applyOverlay(source, component string) {
	w.t.Helper()
	dir := w.t.TempDir()
	base, err := filepath.Rel(dir, filepath.Join(root(), "deploy", "base"))
	if err != nil {
		w.t.Fatal(err)
	}
	if component != "" {
		component = filepath.Join(filepath.Dir(base), component)
	}
	_, tag, _ := strings.Cut(deployedImage, ":")
	overlay := fmt.Sprintf(`
resources: [%s]
components: [%s]
images: [{name: quorate.dev/quorate, newTag: %s}]
configMapGenerator:
- {name: quorate-config, namespace: %s, behavior: replace, files: [quorate.yaml]}
patches:
- target: {kind: CronJob}
  patch: |
    - {op: add, path: /spec/suspend, value: true}
`, base, component, tag, systemNamespace)
	settings := fmt.Sprintf(`
apiVersion: config.quorate.dev/v1alpha1
kind: Configuration
kubernetes: {namespaces: [%s]}
log: {format: json}
sources:
- {location: %q, branch: main, path: clusters}
`, w.namespace, source)
	for name, text := range map[string]string{"kustomization.yaml": overlay, "quorate.yaml": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.kubectl("apply", "--kustomize", dir)
}

// runJob creates a Job from the CronJob, waits for the Job to succeed and returns its log.
func (w *world) runJob(name string) string {
	w.t.Helper()
	w.kubectl("--namespace", systemNamespace, "create", "job", name, "--from=cronjob/quorate")
	return w.outcomeOf(name)
}

// outcomeOf waits for a Job to succeed and returns its log.
func (w *world) outcomeOf(name string) string {
	w.t.Helper()
	jobs := w.kube.BatchV1().Jobs(systemNamespace)
	eventually(w.t, "the Job ends", func() error {
		job, err := jobs.Get(w.ctx(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case job.Status.Succeeded+job.Status.Failed == 0:
			return fmt.Errorf("%s: %s", name, w.kubectl("--namespace", systemNamespace, "get", "pods", "--output=wide"))
		}
		return nil
	})
	logs := w.kubectl("--namespace", systemNamespace, "logs", "job/"+name)
	job, err := jobs.Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if !succeeded(job) {
		w.t.Fatalf("Job %s: %+v\n%s", name, job.Status, logs)
	}
	return logs
}

func succeeded(job *batchv1.Job) bool { return job.Status.Succeeded > 0 && job.Status.Failed == 0 }

// kubectl runs kubectl inside the sandbox's network and returns its output.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.tryKubectl(args...)
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *world) tryKubectl(args ...string) (string, error) {
	out, err := exec.Command(binary("sandbox"), append([]string{"exec", "--name", w.name, "--", "kubectl"}, args...)...).CombinedOutput()
	return string(out), err
}

// serveInside serves the repository from the cluster's network, and returns a URL that pods can reach.
func (w *world) serveInside() string {
	w.t.Helper()
	server := exec.Command(binary("sandbox"), "exec", "--name", w.name, "--", binary("sandbox"), "serve-git", filepath.Dir(w.repository.bare))
	server.Stderr = os.Stderr
	stop, err := server.StdinPipe() // when stop is closed, the server ends, even if the test is killed
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = stop.Close()
		_ = server.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.t.Fatalf("start a git server in the sandbox: %v", err)
	}
	return strings.TrimSpace(url) + "/" + filepath.Base(w.repository.bare)
}

// inside returns the address at which pods reach servers in the sandbox's network. It is the API server's address.
func (w *world) inside() string {
	w.t.Helper()
	address := w.kubectl("--namespace", "default", "get", "endpointslices", "--selector", "kubernetes.io/service-name=kubernetes",
		"--output", "jsonpath={.items[0].endpoints[0].addresses[0]}")
	return strings.TrimSpace(address)
}
