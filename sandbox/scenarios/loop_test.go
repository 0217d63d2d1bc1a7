package scenarios

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLoop checks that a loop bootstraps pushed clusters and replaces a lost volume without further commands. When the
// loop is stopped, it exits with 0 and releases its lease.
func TestLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"README.md": "nothing is declared yet"})
	loop := w.start(outside, "run", "--loop", setting("loop.gitInterval", "1s"))

	pushed := time.Now()
	w.declare(modern, three)
	w.untilConverged("a push is picked up", 3)
	t.Logf("founded %s after the push", time.Since(pushed).Round(time.Millisecond))
	id, members, volumes := w.requireOneCluster("a", 3), w.memberIDs("a"), w.volumeUIDs("a")

	w.loseVolume("a-1")
	lost := time.Now()
	eventually(t, "the member is replaced", func() error {
		if now := w.memberIDs("a"); now["a-1"] == members["a-1"] || len(now) != 3 {
			return fmt.Errorf("members %v, were %v", now, members)
		}
		return nil
	})
	w.untilConverged("a lost volume is repaired", 3)
	t.Logf("repaired %s after the loss", time.Since(lost).Round(time.Millisecond))
	if again := w.requireOneCluster("a", 3); again != id || w.volumeUIDs("a")["a-1"] == volumes["a-1"] {
		t.Errorf("cluster %s became %s, on volumes %v", id, again, w.volumeUIDs("a"))
	}

	_ = loop.command.Process.Signal(syscall.SIGTERM)
	r := loop.wait().requireCode(t, exitDone)
	if strings.Contains(r.stderr, "level=ERROR") {
		t.Errorf("got\n%s", r.stderr)
	}
	w.run().requireCode(t, exitDone) // fails if the lease is still held
}

// untilConverged waits until custom resource a reports that all members of the cluster are healthy.
func (w *world) untilConverged(what string, size int) {
	w.t.Helper()
	eventually(w.t, what, func() error {
		if _, err := w.oneCluster("a", size); err != nil {
			return err
		}
		if s := w.status("a"); s.Rule != "Converged" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}
