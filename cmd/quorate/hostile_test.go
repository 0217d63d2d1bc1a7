package main

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"quorate.dev/quorate/gitsource/visible/visibletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Lines of the log, of the progress, and the one that a command ends with show what others have written as text.
func TestHostileTextInLines(t *testing.T) {
	for name, text := range visibletest.Hostile {
		lines := map[string]func(*bytes.Buffer){
			"progress": func(b *bytes.Buffer) {
				progressTo(b, report.Style{})(report.Report{Clusters: []report.Cluster{
					{Namespace: "ns", Name: "x", Decision: decide.Decision{Rule: "R", Verdict: decide.Block, Message: text}},
				}})
			},
			"the last line": func(b *bytes.Buffer) {
				execute(t.Context(), []string{"validate", "--source", ".", "--verify-keys", text}, streams{out: b, err: b})
			},
			"a wrong flag": func(b *bytes.Buffer) {
				execute(t.Context(), []string{"run", "--verify=" + text, "--source=."}, streams{out: b, err: b})
			},
		}
		for _, format := range []string{"text", "json"} {
			for value, attr := range map[string]any{"a string": text, "an error": errors.New(text), "a group": slog.GroupValue(slog.String("x", text))} {
				lines["the log as "+format+", "+value] = func(b *bytes.Buffer) {
					flags := logFlags{format: format}
					log, err := flags.logger(streams{err: b})
					if err != nil {
						t.Fatal(err)
					}
					log.With("cluster", "ns/x").Info("said", "words", attr)
				}
			}
		}
		for where, print := range lines {
			var b bytes.Buffer
			print(&b)
			if unfit := visibletest.Unfit(b.String()); unfit != "" {
				t.Errorf("%s in %s: %s: %.300q", name, where, unfit, b.String())
			}
			if visibletest.Long(b.String()) {
				t.Errorf("%s in %s: a line of it is very long", name, where)
			}
		}
	}
}
