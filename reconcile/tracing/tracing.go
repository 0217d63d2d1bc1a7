// Package tracing makes spans of what a run does: one for each pass, cluster, phase and action. Where they go is no
// matter of its own.
package tracing

import (
	"context"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"quorate.dev/quorate/reconcile/steps"
	"quorate.dev/quorate/visible"
)

// Name of the instrumentation.
const Name = "quorate.dev/quorate/reconcile"

// Tracer makes spans. It may be used by several goroutines at once.
type Tracer struct{ tracer trace.Tracer }

// New makes spans of a provider.
func New(provider trace.TracerProvider) Tracer { return Tracer{provider.Tracer(Name)} }

// Begin implements steps.Hook.
func (t Tracer) Begin(ctx context.Context, s steps.Step) (context.Context, func(steps.End)) {
	ctx, span := t.tracer.Start(ctx, nameOf(s), trace.WithAttributes(texts(
		"k8s.cluster.name", s.Kubernetes, "k8s.namespace.name", s.Namespace, "quorate.cluster", s.Cluster,
		"quorate.source", s.Source, "quorate.action", s.Detail)...))
	return ctx, func(e steps.End) {
		span.SetAttributes(texts("quorate.outcome", e.Outcome, "quorate.rule", e.Rule, "quorate.verdict", e.Verdict,
			"quorate.revision", e.Revision)...)
		if s.Kind == steps.Run || s.Kind == steps.Pass {
			span.SetAttributes(attribute.Int("quorate.clusters", e.Clusters))
		}
		if e.Outcome == steps.Error {
			span.SetStatus(codes.Error, harmless(e.Error))
		}
		span.End()
	}
}

// nameOf is the name of the span of a step. There are few: what it is about is in the attributes.
func nameOf(s steps.Step) string {
	switch s.Kind {
	case steps.Run:
		return "quorate " + s.Name
	case steps.Phase, steps.Action:
		return s.Name
	case steps.Pass, steps.Cluster:
	}
	return string(s.Kind)
}

// texts are attributes, each a name and a text; those without a text are left out.
func texts(pairs ...string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		if text := harmless(pairs[i+1]); text != "" {
			list = append(list, attribute.String(pairs[i], text))
		}
	}
	return list
}

var (
	// beforeHost is what a URL has before its host, which may be a password, whatever is in it.
	beforeHost = regexp.MustCompile(`://\S*@`)
	// afterPath is what a URL has after its path, which may be a token.
	afterPath = regexp.MustCompile(`(://[^\s?#]*)[?#]\S*`)
)

// longest is how many bytes a text has at most.
const longest = 1 << 10

// harmless is a text without what may be a secret in a URL. No source with such a URL is read, and no error of ours
// shows one: that is held here too, as traces go to others.
func harmless(text string) string {
	text = afterPath.ReplaceAllString(beforeHost.ReplaceAllString(text, "://"), "$1") // before anything cuts it
	text = visible.Line(text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
