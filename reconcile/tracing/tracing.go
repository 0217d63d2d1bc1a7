// Package tracing creates spans for a run: one for each pass, cluster, phase and action. It does not export them.
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

// Name is the name of the instrumentation.
const Name = "quorate.dev/quorate/reconcile"

// Tracer creates spans. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer that uses a provider.
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

// nameOf returns the name of a step's span. There are few names: details are in the attributes.
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

// texts returns attributes from pairs of name and text, omitting those with an empty text.
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
	// beforeHost matches the part of a URL before its host, which may contain a password with any characters.
	beforeHost = regexp.MustCompile(`://\S*@`)
	// afterPath matches the part of a URL after its path, which may be a token.
	afterPath = regexp.MustCompile(`(://[^\s?#]*)[?#]\S*`)
)

// longest is the maximum length of a text, in bytes.
const longest = 1 << 10

// harmless removes possible secrets in URLs from a text. Sources with such URLs are not read, and Quorate's own errors
// do not show them, but traces leave the process, so they are checked again.
func harmless(text string) string {
	text = afterPath.ReplaceAllString(beforeHost.ReplaceAllString(text, "://"), "$1") // before anything truncates it
	text = visible.Line(text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
