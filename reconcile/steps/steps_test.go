package steps_test

import (
	"slices"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/steps"
)

// diary is a hook that records the phases that have ended.
type diary struct{ ended []string }

func (d *diary) Phase(name string, took time.Duration) {
	if took < 0 {
		name += " too early"
	}
	d.ended = append(d.ended, name)
}

func (d *diary) LeaseConflict() {}

// TestPhaseIsReportedAtItsEnd checks that a phase is reported once, when it ends, even if it ends with a panic.
func TestPhaseIsReportedAtItsEnd(t *testing.T) {
	d := &diary{}
	end := steps.Begin(d, steps.Act)
	if d.ended != nil {
		t.Errorf("%q ended too early", d.ended)
	}
	end()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic does not continue")
			}
		}()
		defer steps.Begin(d, steps.Report)()
		panic("burst")
	}()
	if want := []string{"act", "report"}; !slices.Equal(d.ended, want) {
		t.Errorf("got %q, want %q", d.ended, want)
	}
	steps.Begin(nil, steps.Act)() // does nothing
}
