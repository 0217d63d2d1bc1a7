package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/internal/procgroup/procgrouptest"
	"quorate.dev/quorate/reconcile"
)

// TestLoopFlags checks that invalid combinations of flags are rejected with a reason.
func TestLoopFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--loop --until-converged":   "--until-converged and --loop: a loop continues after everything is up to date",
		"--loop --timeout 1m":        "--timeout and --loop: a loop runs until stopped",
		"--loop -o json":             "--output and --loop",
		"--loop --detailed-exitcode": "--detailed-exitcode and --loop",
		"--listen :0":                "--listen requires --loop",
		"--loop loop.resync=0s":      "loop.resync: 0s: must be at least 1s",
		"--loop --timeout 1m --output json": "--timeout and --loop: a loop runs until stopped; " +
			"limits.clusterTimeout limits the time per cluster; remove one of them; " +
			"--output and --loop: a loop does not print a final report; results are in the status of each cluster; remove one of them",
		"kubernetes.leaseDuration=10m1s": "kubernetes.leaseDuration: 10m1s: must be at most 10m0s",
		"--loop --listen localhost:none": "--listen localhost:none: listen tcp",
	} {
		var stderr bytes.Buffer
		args := withSettings(t, append([]string{"run", "--source", "cluster", "--kubeconfig", kubeconfigOfNobody(t)}, strings.Fields(line)...)...)
		code := execute(t.Context(), args, streams{out: io.Discard, err: &stderr})
		if said := strings.Join(strings.Fields(stderr.String()), " "); code != exitInvalid || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, %s", line, code, said)
		}
	}
	var stderr bytes.Buffer
	if code := execute(t.Context(), []string{"plan", "--source", "cluster", "--loop"}, streams{out: io.Discard, err: &stderr}); code != exitInvalid {
		t.Errorf("plan --loop: code %d, %s", code, stderr.String())
	}
}

// kubeconfigOfNobody returns a kubeconfig for an unreachable API server.
func kubeconfigOfNobody(t *testing.T) string {
	return filesIn(t, "kubeconfig", "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}], users: [{name: u, user: {token: t}}]}") + "/kubeconfig"
}

// TestLoopEndpointStatusCodes checks the status codes of probes and metrics before the first pass, and of unknown
// paths.
func TestLoopEndpointStatusCodes(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "figures") })
	with, without := handler(&reconcile.Reconciler{}, metrics), handler(&reconcile.Reconciler{}, nil)
	for _, c := range []struct {
		handler      http.Handler
		method, path string
		want         int
	}{
		{with, "GET", "/healthz", http.StatusServiceUnavailable}, // the loop has not started
		{with, "GET", "/readyz", http.StatusServiceUnavailable},
		{with, "GET", "/metrics", http.StatusOK},
		{without, "GET", "/metrics", http.StatusNotFound},
		{with, "POST", "/healthz", http.StatusMethodNotAllowed},
		{with, "GET", "/", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
}

// said collects the output of a running process.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// loops is a loop in a separate process.
type loops struct {
	*exec.Cmd
	said said
}

func (w *tenants) loop(args ...string) *loops {
	w.Helper()
	l := &loops{Cmd: exec.Command(testProgram(w.T), withSettings(w.T, append([]string{"run", "--loop", "loop.gitInterval=1s", "--kubeconfig", w.kubeconfig}, args...)...)...)}
	l.Env, l.Stdout, l.Stderr = append(os.Environ(), runsMain+"=1"), &l.said, &l.said
	if err := l.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = l.Process.Kill() })
	return l
}

// stop stops the loop as Kubernetes does.
func (l *loops) stop(t *testing.T) {
	t.Helper()
	_ = l.Process.Signal(syscall.SIGTERM)
	if err := l.Wait(); err != nil {
		t.Errorf("when stopped, it ends with %v\n%s", err, l.said.String())
	}
}

// until waits until the status of a custom resource shows the expected revision.
func (w *tenants) until(what, cluster, revision string) {
	w.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if c := w.cluster(cluster); c != nil && strings.Contains(c.Status.DeclaredRevision, revision) && c.Status.Rule == "NothingRuns" {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("%s: %+v", what, w.cluster(cluster))
		}
	}
}

// TestTwoLoopsApplyPushesAndReleaseLeases checks that two loops on one API server pick up pushes on their own and do
// not touch unchanged clusters. When stopped, they exit with 0 and leave no leases behind. Together, they write no more
// than a single loop would.
func TestTwoLoopsApplyPushesAndReleaseLeases(t *testing.T) {
	w := newTenants(t, "own")
	w.made("own/one", "own/two")
	first := w.push("own", "own/one", "own/two")
	address := procgrouptest.Address()
	one := w.loop(append(w.sources("own"), "--listen", address)...)
	two := w.loop(w.sources("own")...)
	w.until("the first revision", "own/one", first)
	w.until("the first revision", "own/two", first)
	w.answers(address)
	before := w.cluster("own/two").ResourceVersion
	changed := strings.Replace(running, "replicas: 1", "lifecycle: Stopped, replicas: 5", 1)
	next := w.push("own", changed, "own/two")
	w.until("a push", "own/one", next)
	time.Sleep(3 * time.Second) // two git reads by each loop, which take longer than the pause after a write
	if after := w.cluster("own/two"); after.ResourceVersion != before {
		t.Errorf("a push that does not change it was written into it: %+v", after.Status)
	}
	one.stop(t)
	next = w.push("own", strings.Replace(changed, "replicas: 5", "replicas: 3", 1), "own/two")
	w.until("a push, with one loop gone", "own/one", next)
	two.stop(t)
	leases, err := w.server.Client.CoordinationV1().Leases("own").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			t.Errorf("%s is still held by %s", lease.Name, *holder)
		}
	}
	for _, l := range []*loops{one, two} {
		if text := l.said.String(); strings.Contains(text, "level=ERROR") || strings.Count(text, "LockedElsewhere") > 20 {
			t.Errorf("got\n%s", text)
		}
	}
}

// answers fails unless a loop is alive and ready.
func (w *tenants) answers(address string) {
	w.Helper()
	for _, path := range []string{"/healthz", "/readyz"} {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			r, err := http.Get("http://" + address + path)
			if err == nil {
				r.Body.Close()
				if r.StatusCode == http.StatusOK {
					break
				}
			}
			if time.Now().After(end) {
				w.Fatalf("%s: %+v, %v", path, r, err)
			}
		}
	}
}
