package scenarios

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// TestKillAfterEveryWrite kills quorate right after each write of a bootstrap has taken effect, including leases and
// events. Each time, the next run must continue. The result must be a single healthy cluster, equivalent to one that
// was not disturbed.
func TestKillAfterEveryWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three)
	proxy := w.newProxy()
	w.convergeFrom(through(proxy))
	want, writes := w.snapshot(), written(proxy)
	t.Logf("a bootstrap takes %d writes", len(writes))

	w = newWorld(t)
	w.declare(modern, three)
	broken := w.killAfterEach(w.newProxy(), writes)
	w.requireOneCluster("a", 3)
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not like an undisturbed cluster: %s", wrong)
	}
	if n := len(w.volumeUIDs("a")); n != 3 {
		t.Errorf("%d volumes, want 3", n)
	}
	for _, write := range writes {
		if write.sure() && !slices.Contains(broken, write.what) {
			t.Errorf("it was not killed after %s, only after %q", write, broken)
		}
	}
}

// write is the nth successful write of an object, or the nth successful call that changes etcd.
type write struct {
	what string
	nth  int
}

func (w write) String() string { return fmt.Sprintf("%s %d", w.what, w.nth) }

func whatIsWritten(r faultproxy.Request) string {
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + r.Name)
}

// written returns the writes through the proxy, in order. If a purely informative write is repeated, only the first
// one is included.
func written(proxy *faultproxy.Proxy) []write {
	var list []write
	count := map[string]int{}
	for _, request := range proxy.Writes() {
		if request.Status == 0 || request.Status >= http.StatusBadRequest {
			continue
		}
		what := whatIsWritten(request)
		count[what]++
		if count[what] == 1 || !isRepeated(what) {
			list = append(list, write{what, count[what]})
		}
	}
	return list
}

// isRepeated reports whether a write is purely informative. Runs repeat such a write whenever they observe something
// new.
func isRepeated(what string) bool {
	return slices.ContainsFunc([]string{" events", " leases", " etcdclusters/status"}, func(resource string) bool {
		return strings.Contains(what, resource)
	})
}

// sure reports whether every run makes this write. How often a run repeats a write depends on the states that it
// observes. Only a leader transfers leadership. A claim is annotated again only if an earlier run ended before etcd
// reported its storage version.
func (w write) sure() bool {
	return w.nth == 1 && w.what != "call etcd MoveLeader" && !strings.HasPrefix(w.what, "patch persistentvolumeclaims ")
}

// killAt runs quorate until the requests that the script breaks have succeeded n times, and then kills it.
func (w *world) killAt(proxy *faultproxy.Proxy, script func(killed func(n int) faultproxy.Fault) faultproxy.Script) result {
	w.t.Helper()
	started := make(chan *process, 1)
	proxy.Break(script(func(n int) faultproxy.Fault {
		return faultproxy.DropSuccess(n, func() { (<-started).kill() })
	}))
	p := w.start(through(proxy), "run", "--until-converged", "--timeout", patience.String(), setting("kubernetes.leaseDuration", "3s"))
	started <- p
	r := p.wait()
	proxy.Break(nil)
	return r
}

// killAtFirst runs quorate until the first request with this verb to this resource has succeeded, and then
// kills it.
func (w *world) killAtFirst(verb, resource string) {
	w.t.Helper()
	r := w.killAt(w.newProxy(), func(killed func(int) faultproxy.Fault) faultproxy.Script {
		return faultproxy.On(verb, resource, killed(1))
	})
	r.requireCode(w.t, exitKilled)
}
