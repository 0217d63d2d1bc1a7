package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// progress tells a person at a terminal what each cluster is at, a line for each change; nil where
// no person looks on.
func progress(w io.Writer, plan bool) func(report.Report, time.Duration) {
	if plan || !isTerminal(w) {
		return nil
	}
	return progressTo(w, style(w))
}

func progressTo(w io.Writer, paint report.Style) func(report.Report, time.Duration) {
	var mu sync.Mutex
	said := map[string]string{}
	return func(rep report.Report, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range rep.Clusters {
			what := c.Error
			if what == "" {
				what = c.Decision.Message
			}
			if line := c.Decision.Rule + what; said[c.Key()] != line {
				said[c.Key()] = line
				head, rule := fmt.Sprintf("%s  %s  ", time.Now().Format(time.TimeOnly), c.Key()),
					fmt.Sprintf("  %s  ", c.Decision.Rule)
				text := paint.Wrap(what, len(head)+len("Block")+len(rule), 4)
				fmt.Fprintf(w, "%s%s%s%s\n", head, paint.Verdict(c.Decision.Verdict), rule, text)
			}
		}
	}
}
