package clusters

import (
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

func TestMissingIsBounded(t *testing.T) {
	began := time.Now()
	c := &cluster{state: decide.State{Objects: decide.Objects{RunsReplicas: 20_000_000}}}
	if n := len(c.missing()); n > 64 {
		t.Errorf("%d ordinals in %s", n, time.Since(began))
	}
}
