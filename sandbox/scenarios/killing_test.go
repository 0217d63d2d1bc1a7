package scenarios

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// TestKillAfterEveryWrite kills quorate right after each write of bootstrapping in turn has taken effect. Each
// time, the next run must continue to one healthy cluster like an undisturbed one.
func TestKillAfterEveryWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three)
	proxy := w.newProxy()
	w.convergeFrom(through(proxy))
	want, writes := w.snapshot(), written(proxy)
	t.Logf("founding takes %d writes", len(writes))
	for _, last := range writes {
		t.Run(last.String(), func(t *testing.T) {
			t.Parallel()
			testKillAfter(t, last, want)
		})
	}
}

func testKillAfter(t *testing.T, last write, want map[string]string) {
	w := newWorld(t)
	w.declare(modern, three)
	w.killAfter(w.newProxy(), last)
	w.converge()
	w.requireOneCluster("a", 3)
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not like an undisturbed cluster: %s", wrong)
	}
	if n := len(w.volumeUIDs("a")); n != 3 {
		t.Errorf("%d volumes, want 3", n)
	}
}

// write is the nth successful write of an object, or change of etcd.
type write struct {
	what string
	nth  int
}

func (w write) String() string { return fmt.Sprintf("%s %d", w.what, w.nth) }

func whatIsWritten(r faultproxy.Request) string {
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + r.Name)
}

// written lists the writes through the proxy, in order. Of purely informative writes, which are repeated, it
// lists only the first of each.
func written(proxy *faultproxy.Proxy) []write {
	var list []write
	count := map[string]int{}
	for _, request := range proxy.Writes() {
		if request.Status == 0 || request.Status >= http.StatusBadRequest {
			continue
		}
		what := whatIsWritten(request)
		count[what]++
		if count[what] == 1 || !slices.Contains([]string{"events", "leases", "etcdclusters/status"}, request.Resource) {
			list = append(list, write{what, count[what]})
		}
	}
	return list
}

// on breaks every attempt at this write, and forwards all other requests.
func (w write) on(fault faultproxy.Fault) faultproxy.Script {
	return func(r faultproxy.Request) faultproxy.Fault {
		if r.Write == 0 || whatIsWritten(r) != w.what {
			return nil
		}
		return fault
	}
}

// sure reports whether every run makes this write. The number of repeated writes depends on what a run observes
// on the way, only a leader transfers leadership, and a claim is annotated again only if an earlier run ended before
// etcd reported its storage version.
func (w write) sure() bool {
	return w.nth == 1 && w.what != "call etcd MoveLeader" && !strings.HasPrefix(w.what, "patch persistentvolumeclaims ")
}

// killAfter runs quorate and kills it right after this write.
func (w *world) killAfter(proxy *faultproxy.Proxy, last write) {
	w.t.Helper()
	r := w.killAt(proxy, func(fault func(n int) faultproxy.Fault) faultproxy.Script { return last.on(fault(last.nth)) })
	switch {
	case r.code == exitDone && !last.sure():
		w.t.Logf("this run did not come to %s", last)
	case r.code != exitKilled:
		w.t.Fatalf("it was not killed:\n%s", r)
	}
}

// killAt runs quorate until the requests that the script breaks have succeeded n times, and then kills it.
func (w *world) killAt(proxy *faultproxy.Proxy, script func(killed func(n int) faultproxy.Fault) faultproxy.Script) result {
	w.t.Helper()
	started := make(chan *process, 1)
	proxy.Break(script(func(n int) faultproxy.Fault {
		return faultproxy.DropSuccess(n, func() { (<-started).kill() })
	}))
	p := w.start(through(proxy), "run", "--until-converged", "--timeout", patience.String(), "--lease-duration", "3s")
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
