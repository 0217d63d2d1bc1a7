package scenarios

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// besideOthers is the maximum factor by which a hostile tenant may slow down another tenant's runs.
const besideOthers = 1.2

// TestTwoTenants checks that a tenant that pushes hostile declarations hardly slows down another tenant of the same
// run. The other tenant's cluster is bootstrapped, repaired and scaled. The comparison is a separate run at the same
// time, which is slowed equally by other load. One of five comparisons must succeed, because a pod that waits for its
// node for one second already adds 5 percent. The test runs alone: if other tests use all processors, the run with more
// to do is slowed more.
func TestTwoTenants(t *testing.T) {
	hostile := newWorld(t)
	hostile.repository.push(map[string]string{"hung.yaml": declaration("hung", modern, one)})
	hostile.converge()
	var ratios []string
	for range 5 {
		alone, beside := newWorld(t), newWorld(t)
		lives := make(chan time.Duration, 1)
		go func() {
			defer close(lives) // even if life fails
			lives <- alone.life()
		}()
		took := beside.life(hostile.besides(beside)...)
		base := <-lives
		if t.Failed() {
			return
		}
		ratio := took.Seconds() / base.Seconds()
		beside.requireNothingOf(hostile)
		hostile.requireNothingOf(beside)
		ratios = append(ratios, fmt.Sprintf("%.2f", ratio))
		if ratio <= besideOthers {
			t.Logf("beside a hostile tenant, %s and its like take %s times what they take alone", took.Round(time.Second), strings.Join(ratios, ", "))
			return
		}
	}
	t.Errorf("with a hostile tenant, a life takes %s times as long as without; want at most %.1f", strings.Join(ratios, ", "), besideOthers)
}

// life bootstraps a cluster, replaces a member that has lost its volume, and adds a member. It returns the time
// that the runs took.
func (w *world) life(args ...string) time.Duration {
	w.declare(modern, three)
	took := w.settles(args, func(s status) bool { return s.ReadyReplicas == 3 })
	lost := w.status("a").member("a-1").ID
	w.emptyVolumes("a-1")
	took += w.settles(args, func(s status) bool { return s.ReadyReplicas == 3 && s.member("a-1").ID != lost })
	w.declare(modern, "replicas: 4")
	return took + w.settles(args, func(s status) bool { return s.ReadyReplicas == 4 })
}

// settles runs quorate until the status of cluster a is up to date and done accepts it, even if the run has other work.
// It returns how long that took.
func (w *world) settles(args []string, done func(status) bool) time.Duration {
	p := w.start(outside, append([]string{"run", "--until-converged", "--timeout", patience.String(), setting("kubernetes.leaseDuration", "3s")}, args...)...)
	err := poll(w.ctx(), patience, func() error {
		found, err := w.object(etcdclusters, "a")
		if err != nil {
			return err
		}
		var s status
		convert(w.t, found.Object["status"], &s)
		if ready := s.condition("Ready"); ready.Reason != "Converged" || ready.ObservedGeneration != found.GetGeneration() || !done(s) {
			return fmt.Errorf("a is not as declared: %s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	took := time.Since(p.started)
	_ = p.command.Process.Signal(syscall.SIGTERM)
	if r := p.wait(); err != nil {
		w.t.Errorf("%v:\n%s", err, r)
	}
	return took
}

// besides returns the arguments for a run that serves another tenant together with this hostile tenant. Each hostile
// source is bound to its own namespace. The sources include files that cannot be parsed or are slow to read, and a
// server that never responds. They declare objects of the other tenant, clusters that never form, a cluster with an
// etcd that accepts connections without responding, and a cluster that requests more than is allowed.
func (w *world) besides(other *world) []string {
	w.signal("hung-0", syscall.SIGSTOP)
	w.t.Cleanup(func() { w.signal("hung-0", syscall.SIGCONT) })
	clusters := newRepository(w.t)
	clusters.push(map[string]string{
		"other.yaml":  strings.Replace(declaration("a", modern, one), "name: a", "name: a\n  namespace: "+other.namespace, 1),
		"stuck.yaml":  declaration("stuck", modern, three, unschedulable),
		"image.yaml":  declaration("image", modern, one, "image: {repository: registry.example.com/etcd}"),
		"asks.yaml":   declaration("asks", modern, one, "pod: {tolerations: [{operator: Exists}], priorityClassName: system-node-critical, labels: {app: a}}"),
		"text.yaml":   declaration("text", modern, "replicas: \"\\u001b[2J##vso[task.complete result=Succeeded]\\u202e\""),
		"rename.yaml": declaration("renamed", modern, one, "lifecycle: Deleted", "storage: {retention: Delete}"),
	})
	bombs := map[string]string{
		"aliases":    "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
		"scalars":    "[" + strings.Repeat("a,", 1<<20-2),
		"directives": strings.Repeat("%TAG ! tag:x,2000:\n", 100_000),
		"resources":  "resources: [" + strings.Repeat("none.yaml,", 8_000) + "]\n",
	}
	bound := ",default-namespace=" + w.namespace + ",allow-namespace=" + w.namespace +
		",allow-node-selector=nowhere,allow-image-repository=gcr.io/etcd-development/etcd;registry.example.com/*" // so that clusters that never form are accepted
	args := []string{"--namespace", w.namespace, setting("sourceDefaults.defaultNamespace", other.namespace), "--allow-namespace", other.namespace,
		"--source", clusters.bare + bound, "--source", w.repository.bare + bound, "--source", "http://" + w.neverAnswers() + "/x.git" + bound}
	for kind, text := range bombs {
		repository, file := newRepository(w.t), "a.yaml"
		if kind == "resources" {
			file = "kustomization.yaml"
		}
		repository.push(map[string]string{file: text})
		args = append(args, "--source", repository.bare+bound)
	}
	return args
}

// neverAnswers returns the address of a server that accepts connections without responding.
func (w *world) neverAnswers() string {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// requireNothingOf fails if this tenant can see anything that names the other tenant.
func (w *world) requireNothingOf(other *world) {
	w.t.Helper()
	for _, custom := range w.list(etcdclusters) {
		if text := fmt.Sprint(custom.Object); strings.Contains(text, other.namespace) || strings.Contains(text, other.repository.bare) {
			w.t.Errorf("%s shows something of another tenant: %s", custom.GetName(), text)
		}
	}
}
