package status

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestHostileTextInStatusAndEvents checks that untrusted text in conditions and events is readable and short enough.
func TestHostileTextInStatusAndEvents(t *testing.T) {
	for name, text := range printabletest.Hostile {
		for where, say := range map[string]func(*report.Cluster, *reconcile.SourceStatus, *targets.Target){
			"an error of the source":  func(_ *report.Cluster, s *reconcile.SourceStatus, _ *targets.Target) { s.Error = text },
			"an error of the cluster": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) { c.Error = text },
			"a block": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) {
				c.Decision = decide.Decision{Rule: "InvalidSpec", Verdict: decide.Block, Message: text}
			},
			"an outcome": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) {
				c.Decision.Action, c.Outcome = decide.RenewCertificates{}, &report.Outcome{Changed: true, Detail: text}
			},
			"an orphan": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) {
				c.State.Declared.Orphaned = text
			},
			"a removal that is held": func(_ *report.Cluster, _ *reconcile.SourceStatus, t *targets.Target) {
				t.Held, t.Warnings = text, []string{text}
			},
			"silent members": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) {
				c.State.Membership = decide.Membership{Why: text}
			},
			"what a member runs": func(c *report.Cluster, _ *reconcile.SourceStatus, _ *targets.Target) {
				c.State.Membership.Members[1].Version = text
			},
		} {
			live := liveCluster()
			pass(live, healthyEntry(), "1")
			var target targets.Target
			entry, source := healthyEntry(), reconcile.SourceStatus{Revision: "main@sha1:1"}
			say(&entry, &source, &target)
			status := New(live, target, entry, source)
			events := Events(live, status, target, entry, "host", noon)
			var told []string
			for _, condition := range status.Conditions {
				told = append(told, condition.Message)
			}
			for _, m := range status.Members {
				told = append(told, m.Name, m.Version, m.Message)
			}
			for _, e := range events {
				told = append(told, e.Note)
			}
			for _, what := range told {
				if unfit := printabletest.Unfit(what + " " + printabletest.Mark); unfit != "" || printabletest.Long(what) {
					t.Errorf("%s as %s: %s: %.300q", name, where, unfit, what)
				}
			}
			if !strings.Contains(strings.Join(told, "\n"), printabletest.Mark) {
				t.Errorf("%s as %s is not reported", name, where)
			}
		}
	}
}
