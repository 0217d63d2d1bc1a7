package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"quorate.dev/quorate/reconcile/notify/deliver"
	"quorate.dev/quorate/reconcile/steps"
	"quorate.dev/quorate/reconcile/tracing"
)

const (
	// timeToFlush is how long a run that has ended waits for its traces to be taken, and hurriedFlush how long one
	// does that was out of time before.
	timeToFlush, hurriedFlush = 3 * time.Second, time.Second
	// settingEndpoints and settingProtocols are those of the environment that say where traces go, and how; the first
	// one that is set counts.
	settingEndpoints = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT"
	settingProtocols = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL OTEL_EXPORTER_OTLP_PROTOCOL"
	// settingHeaders are those that say what is sent to a collector besides, which may be credentials.
	settingHeaders = "OTEL_EXPORTER_OTLP_TRACES_HEADERS OTEL_EXPORTER_OTLP_HEADERS"
)

// traces go to a collector, where the environment names one. If it does not, this is nil, and does nothing.
type traces struct {
	provider *sdktrace.TracerProvider
	to       *collector
	env      func(string) string
}

// newTraces are those that the environment asks for. What is wrong with that is a warning: it changes nothing about
// the run.
func newTraces(ctx context.Context, env func(string) string, log *slog.Logger) *traces {
	host, err := tracesTo(env)
	if err != nil {
		log.Warn("make no traces", "error", err)
	}
	if host == "" {
		return nil
	}
	// The SDK writes settings that it does not understand to stderr, as they are, and they may be secrets.
	otel.SetLogger(logr.New(quiet{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	endpoint, _ := setting(env, settingEndpoints)
	to := &collector{host: host, url: endpoint, secrets: headersIn(env), log: log}
	if to.SpanExporter, err = otlptracehttp.New(ctx, otlptracehttp.WithProxy(noRedirect)); err != nil {
		log.Warn("make no traces", "error", to.why(err))
		return nil
	}
	if wrong := wrongSampler(env); wrong != "" {
		log.Warn("make all traces", "error", wrong)
	}
	about, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(
		attribute.String("service.name", "quorate"), attribute.String("service.version", version())),
		resource.WithFromEnv()) // what cannot be told is left out
	return &traces{sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(about)), to, env}
}

// tracesTo is the host that traces go to; empty if they go nowhere. An error shows nothing of a setting that may hold
// a password.
func tracesTo(env func(string) string) (host string, err error) {
	endpoint, name := setting(env, settingEndpoints)
	switch {
	case endpoint == "" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"):
		return "", nil
	case env("OTEL_TRACES_EXPORTER") == "none":
		return "", nil
	}
	if exporter := env("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return "", errors.New("OTEL_TRACES_EXPORTER: want otlp or none")
	}
	if protocol, name := setting(env, settingProtocols); protocol == "grpc" {
		return "", fmt.Errorf("%s: grpc is not supported; use http/protobuf, most often at port 4318", name)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s: want a URL, such as http://HOST:4318", name)
	}
	if u.User != nil {
		return "", fmt.Errorf("%s: the URL of %s holds credentials; they belong in OTEL_EXPORTER_OTLP_HEADERS", name,
			u.Host)
	}
	return u.Host, nil
}

// noRedirect is the proxy of a request, and ends one that was sent on: headers are for whom they were given for. The
// SDK lets nobody else see a redirect without giving up what the environment says of TLS.
func noRedirect(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("it redirects; no redirect is followed")
	}
	return http.ProxyFromEnvironment(r)
}

// headersIn are the values of the headers, in all the forms in which an answer may repeat them.
func headersIn(env func(string) string) (values []string) {
	for name := range strings.FieldsSeq(settingHeaders) {
		for header := range strings.SplitSeq(env(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			sent, err := url.PathUnescape(value)
			if err != nil {
				continue // it is not sent
			}
			sent = strings.TrimSpace(sent)
			_, credentials, _ := strings.Cut(sent, " ") // after Bearer or Basic
			values = append(values, strings.TrimSpace(value), sent, credentials)
		}
	}
	return values
}

// samplers are those that the SDK knows.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio"}

// wrongSampler says what is wrong with the settings that say which traces are made; empty if nothing is. The SDK keeps
// silent, and makes all of them. It does not show them.
func wrongSampler(env func(string) string) string {
	sampler := strings.ToLower(strings.TrimSpace(env("OTEL_TRACES_SAMPLER")))
	arg := strings.TrimSpace(env("OTEL_TRACES_SAMPLER_ARG"))
	switch {
	case sampler == "":
		return ""
	case !slices.Contains(samplers, sampler):
		return "OTEL_TRACES_SAMPLER: want one of " + strings.Join(samplers, ", ")
	case strings.HasSuffix(sampler, "traceidratio") && arg != "":
		if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return "OTEL_TRACES_SAMPLER_ARG: want a ratio from 0 to 1, such as 0.1"
		}
	}
	return ""
}

// setting is the first of the settings that is set, and its name.
func setting(env func(string) string, names string) (value, name string) {
	for name = range strings.FieldsSeq(names) {
		if value = strings.TrimSpace(env(name)); value != "" {
			return value, name
		}
	}
	return "", ""
}

// hook is told of steps; nil if there are no traces.
func (t *traces) hook() steps.Hook {
	if t == nil {
		return nil
	}
	return tracing.New(t.provider)
}

// within is a context in which a run is part of the trace of whatever has started it, as a pipeline, if TRACEPARENT
// says which that is.
func (t *traces) within(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": t.env("TRACEPARENT"), "tracestate": t.env("TRACESTATE")})
}

// end has the collector take what it has not yet, for so long at most.
func (t *traces) end(ctx context.Context, longest time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.to.failed(fmt.Errorf("not all were taken within %s", longest))
	}
}

// collector takes spans. That it does not is said once, until it does again.
type collector struct {
	sdktrace.SpanExporter
	host, url string
	// secrets are not to be shown, should an answer repeat them.
	secrets []string
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := c.SpanExporter.ExportSpans(ctx, spans); err != nil {
		c.failed(c.why(err))
	} else {
		c.failing.Store(false)
	}
	return nil
}

func (c *collector) failed(err error) {
	if !c.failing.Swap(true) {
		c.log.Warn("send traces", "to", c.host, "error", err)
	}
}

// why is the beginning of an error without the URL, whose path may be a secret, and without what was sent.
func (c *collector) why(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	text := err.Error()
	if before, after, is := strings.Cut(text, "failed to send to "); is {
		_, after, _ = strings.Cut(after, ": ")
		text = before + after
	}
	return errors.New(deliver.Hide(text, c.url, c.secrets, mostOfFailure))
}

// quiet is for what the SDK has to say of its settings: which kind of thing is wrong, and not what it reads.
type quiet struct{ log *slog.Logger }

// Init implements logr.LogSink.
func (quiet) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (quiet) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (quiet) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (q quiet) Error(_ error, what string, _ ...any) {
	q.log.Warn("a setting of OpenTelemetry, OTEL_…, cannot be understood", "where", what)
}

// WithValues implements logr.LogSink.
func (q quiet) WithValues(...any) logr.LogSink { return q }

// WithName implements logr.LogSink.
func (q quiet) WithName(string) logr.LogSink { return q }
