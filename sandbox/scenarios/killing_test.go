package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// TestKillAfterEveryWrite kills quorate right after each write of founding in turn has taken effect. Each time the next run must go on to
// one healthy cluster like an undisturbed one.
func TestKillAfterEveryWrite(t *testing.T) {
	t.Parallel()
	want, writes := foundUndisturbed(t)
	t.Logf("founding takes %d writes", len(writes))
	for _, w := range writes {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			testKillAfter(t, w, want)
		})
	}
}

func foundUndisturbed(t *testing.T) (map[string]string, []write) {
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	proxy := w.newProxy()
	w.convergeFrom(through(proxy))
	var writes []write
	count := map[string]int{}
	for _, request := range proxy.Writes() {
		what := whatIsWritten(request)
		count[what]++
		writes = append(writes, write{what, count[what]})
	}
	return w.snapshot(), writes
}

// write is the nth time that something is written.
type write struct {
	what string
	nth  int
}

func (w write) String() string { return fmt.Sprintf("%s %d", w.what, w.nth) }

func whatIsWritten(r faultproxy.Request) string {
	return strings.TrimSpace(r.Verb + " " + r.Resource + " " + r.Name)
}

// after breaks that write, and no other.
func (w write) after(fault faultproxy.Fault) faultproxy.Script {
	seen := 0
	return func(r faultproxy.Request) faultproxy.Fault {
		if r.Write == 0 || whatIsWritten(r) != w.what {
			return nil
		}
		if seen++; seen != w.nth {
			return nil
		}
		return fault
	}
}

// surelyWritten is how often every run writes what it writes repeatedly: members file (founding and sealed), lease, status, events.
const surelyWritten = 2

func testKillAfter(t *testing.T, last write, want map[string]string) {
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	proxy := w.newProxy()
	started := make(chan *process, 1)
	proxy.Break(last.after(faultproxy.DropAnswer(func() { (<-started).kill() })))
	p := w.start(through(proxy), "run", "--until-converged", "--timeout", patience.String(), "--lease-duration", "2s")
	started <- p
	r := p.wait()
	switch {
	case r.code == exitDone && last.nth > surelyWritten:
		t.Log("this run did not come to that write: how often a run tells and seals depends on what it sees on the way")
	case r.code != exitKilled:
		t.Fatalf("it was not killed:\n%s", r)
	}
	w.convergeFrom(outside, "--lease-duration", "2s")
	w.requireOneCluster("a", 3)
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not like an undisturbed cluster: %s", wrong)
	}
	if n := len(w.volumeUIDs("a")); n != 3 {
		t.Errorf("%d volumes, want 3", n)
	}
}
