package scenarios

import (
	"bytes"
	"strings"
	"sync"
	"syscall"
	"time"
)

// runUntilWaiting starts a run and interrupts it, as a user would, once the run has bootstrapped a cluster and is
// waiting for its members.
func (w *world) runUntilWaiting(v vantage, args ...string) result {
	w.t.Helper()
	p := w.start(v, append([]string{"run"}, args...)...)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for !strings.Contains(p.stderr.String(), "rule=WaitForFormation") {
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		_ = p.command.Process.Signal(syscall.SIGTERM)
	}()
	return p.wait()
}

// buffer collects the output of a running process.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
