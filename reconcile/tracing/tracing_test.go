package tracing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"quorate.dev/quorate/reconcile/steps"
	"quorate.dev/quorate/reconcile/tracing"
)

// shown returns the finished spans, in order, each with the name of its parent, its attributes and its status.
func shown(spans tracetest.SpanStubs) []string {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var lines []string
	for _, s := range spans {
		line := fmt.Sprintf("%s in %q", s.Name, names[s.Parent.SpanID().String()])
		for _, a := range s.Attributes {
			line += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
		}
		if s.Status.Code != codes.Unset {
			line += fmt.Sprintf(" %s %s", s.Status.Code, s.Status.Description)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(exporter)))
	in := func(ctx context.Context, s steps.Step, e steps.End, do func(context.Context)) {
		steps.Do(ctx, tracer, s, func(ctx context.Context) steps.End { do(ctx); return e })
	}
	nothing := func(context.Context) {}
	in(t.Context(), steps.Step{Kind: steps.Run, Name: "run", Kubernetes: "eu"}, steps.End{Outcome: "blocked", Revision: "main@sha1:1", Clusters: 1}, func(ctx context.Context) {
		in(ctx, steps.Step{Kind: steps.Phase, Name: steps.Fetch, Source: "https://git.example.com/fleet.git"}, steps.End{Outcome: steps.OK, Revision: "main@sha1:1"}, nothing)
		in(ctx, steps.Step{Kind: steps.Pass}, steps.End{Outcome: steps.OK, Clusters: 1}, func(ctx context.Context) {
			in(ctx, steps.Step{Kind: steps.Cluster, Namespace: "shop", Cluster: "a"}, steps.End{Outcome: steps.Error, Error: "AddLearner: no", Rule: "AddLearner", Verdict: "Act"}, func(ctx context.Context) {
				in(ctx, steps.Step{Kind: steps.Phase, Name: steps.Act}, steps.End{Outcome: steps.Error, Error: "no"}, func(ctx context.Context) {
					in(ctx, steps.Step{Kind: steps.Action, Name: "AddLearner", Detail: "AddLearner 3 https://a-3:2380", Namespace: "shop", Cluster: "a"}, steps.End{Outcome: steps.Locked}, nothing)
				})
			})
		})
	})
	want := []string{
		`fetch in "quorate run" quorate.source=https://git.example.com/fleet.git quorate.outcome=ok quorate.revision=main@sha1:1`,
		`AddLearner in "act" k8s.namespace.name=shop quorate.cluster=a quorate.action=AddLearner 3 https://a-3:2380 quorate.outcome=locked`,
		`act in "cluster" quorate.outcome=error Error no`,
		`cluster in "pass" k8s.namespace.name=shop quorate.cluster=a quorate.outcome=error quorate.rule=AddLearner quorate.verdict=Act Error AddLearner: no`,
		`pass in "quorate run" quorate.outcome=ok quorate.clusters=1`,
		`quorate run in "" k8s.cluster.name=eu quorate.outcome=blocked quorate.revision=main@sha1:1 quorate.clusters=1`,
	}
	if got := shown(exporter.GetSpans()); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// No password or token appears in a span, wherever a text comes from and however it changes a URL.
func TestSecrets(t *testing.T) {
	for _, url := range []string{
		"https://me:s3cret@git.example.com/x.git", "https://s3cret@git.example.com/x.git", "https://me:s3cret@@git.example.com/x.git",
		"https://me:a/s3cret@git.example.com/x.git", "https://me:a?b#s3cret@git.example.com/x.git", "https://me:%zzs3cret@git.example.com/x.git",
		"https://git.example.com/x.git?token=s3cret", "https://git.example.com/x.git#s3cret", "https://git.example.com?s3cret",
		"ssh://git:s3cret@git.example.com/x.git", "git+ssh://git:s3cret@h", "HTTPS://me:s3cret@h", "://me:s3cret@h", `"https://me:s3cret@h/": no`,
		"https://me:" + strings.Repeat("a", 8<<10) + "s3cret@git.example.com/" + strings.Repeat("b", 500),
		"https://one:s3cret@h https://two:s3cret@h/?s3cret",
	} {
		exporter := tracetest.NewInMemoryExporter()
		tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(exporter)))
		text := "read " + url + ": refused"
		steps.Do(t.Context(), tracer, steps.Step{Kind: steps.Phase, Name: steps.Fetch, Source: url, Detail: text, Namespace: text, Cluster: text}, func(context.Context) steps.End {
			return steps.End{Outcome: steps.Error, Error: text, Revision: text, Rule: text, Verdict: text}
		})
		if all := fmt.Sprint(shown(exporter.GetSpans())); strings.Contains(all, "s3cret") || !strings.Contains(all, "refused") {
			t.Errorf("%s: %s", url, all)
		}
	}
}

// The content of a span is bounded plain text.
func TestBounded(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(exporter)))
	long := strings.Repeat("\x1b[31m\xff", 1<<20)
	steps.Do(t.Context(), tracer, steps.Step{Kind: steps.Action, Name: "AddLearner", Detail: long}, func(context.Context) steps.End {
		return steps.End{Outcome: steps.Error, Error: long}
	})
	if all := fmt.Sprint(shown(exporter.GetSpans())); len(all) > 3<<10 || strings.Contains(all, "\x1b") || !utf8.ValidString(all) {
		t.Errorf("%d bytes: %.200q", len(all), all)
	}
}

// A step that panics leaves no span open.
func TestPanic(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(exporter)))
	func() {
		defer func() { _ = recover() }()
		steps.Do(t.Context(), tracer, steps.Step{Kind: steps.Pass}, func(context.Context) steps.End { panic("burst") })
	}()
	if got := shown(exporter.GetSpans()); !slices.Equal(got, []string{`pass in "" quorate.outcome=error quorate.clusters=0 Error it panicked`}) {
		t.Errorf("got %q", got)
	}
}
