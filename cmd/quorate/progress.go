package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// progress returns a function that prints a line whenever a cluster's state changes. It returns nil for a plan, or if w
// is not a terminal.
func progress(w io.Writer, plan bool) func(report.Report, time.Duration) {
	if plan || !isTerminal(w) {
		return nil
	}
	return progressTo(w, style(w))
}

func progressTo(w io.Writer, paint report.Style) func(report.Report, time.Duration) {
	var mu sync.Mutex
	told := map[string]*walk{}
	return func(rep report.Report, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range rep.Clusters {
			if told[c.Title()] == nil {
				told[c.Title()] = &walk{}
			}
			what := c.Error
			if what == "" {
				what = c.Decision.Message
			}
			on := told[c.Title()]
			if line := c.Decision.Rule + what; on.said != line {
				on.said = line
				title, rule := printable.Line(c.Title()), fmt.Sprintf("  %s  ", c.Decision.Rule)
				head := fmt.Sprintf("%s  %s  ", time.Now().Format(time.TimeOnly), title)
				text := paint.Wrap(on.step(c)+what, len(head)+len("Block")+len(rule), 4)
				fmt.Fprintf(w, "%s%s%s%s\n", head, paint.Verdict(c.Decision.Verdict), rule, text)
			}
			if c.Outcome != nil && c.Outcome.Changed {
				on.done++
			}
		}
	}
}

// walk is a cluster's progress in a run.
type walk struct {
	// said is the last message.
	said string
	// done counts the actions that changed something.
	done int
	// at and all are the last position that was shown.
	at, all int
}

// step returns a cluster's position in its forecast, such as (3 of 9), including the actions already taken in this run.
// It returns "" if there is only one action or the number of actions is unknown. The position never decreases. The
// total decreases only if the forecast ends in Done, because any other end, such as waiting for a restored member that
// has not started, may be far from the end of the run.
func (on *walk) step(c report.Cluster) string {
	at := on.done
	if c.Decision.Verdict == decide.Act {
		at++
	}
	on.at = max(on.at, at)
	if on.at == 0 || !c.Pending() {
		return ""
	}
	var ahead forecast.Forecast
	if panics.Catch(func() error { ahead = forecast.Of(c.State); return nil }) != nil || ahead.Open {
		return ""
	}
	all := on.done + len(ahead.Steps)
	if ahead.End.Verdict != decide.Done {
		all = max(all, on.all)
	}
	on.all = max(all, on.at)
	if on.all > 1 {
		return fmt.Sprintf("(%d of %d) ", on.at, on.all)
	}
	return ""
}
