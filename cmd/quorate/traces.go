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
	// timeToFlush is how long a finished run waits for its traces to be exported, and hurriedFlush how long it waits if
	// it is out of time.
	timeToFlush, hurriedFlush = 3 * time.Second, time.Second
	// settingEndpoints and settingProtocols are the environment variables for the endpoint and protocol of traces; the
	// first one that is set is used.
	settingEndpoints = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT"
	settingProtocols = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL OTEL_EXPORTER_OTLP_PROTOCOL"
	// settingHeaders are the variables for additional headers, which may contain credentials.
	settingHeaders = "OTEL_EXPORTER_OTLP_TRACES_HEADERS OTEL_EXPORTER_OTLP_HEADERS"
)

// traces exports traces to the collector that the environment names. It is nil, and does nothing, if there is no
// collector.
type traces struct {
	provider *sdktrace.TracerProvider
	to       *collector
	env      func(string) string
}

// newTraces creates the traces that the environment requests. Invalid settings are only logged as warnings: they do not
// affect the run.
func newTraces(ctx context.Context, env func(string) string, log *slog.Logger) *traces {
	host, err := tracesTo(env)
	if err != nil {
		log.Warn("make no traces", "error", err)
	}
	if host == "" {
		return nil
	}
	// The SDK writes invalid settings to stderr as they are, and they may be secrets.
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
		resource.WithFromEnv()) // unknown attributes are omitted
	return &traces{sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(about)), to, env}
}

// tracesTo returns the host that traces are sent to, or "" if traces are off. Errors do not reveal settings that may
// contain a password.
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

// noRedirect is used as the proxy function, and rejects redirected requests, because headers are only for the given
// host. It is the only way in the SDK to detect a redirect without losing the TLS settings of the environment.
func noRedirect(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("it redirects; no redirect is followed")
	}
	return http.ProxyFromEnvironment(r)
}

// headersIn returns the values of the headers, in all forms in which a response may repeat them.
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

// samplers are the samplers that the SDK supports.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio"}

// wrongSampler returns what is wrong with the sampler settings, or "". The SDK ignores invalid values silently, and
// samples everything. The result does not contain the values.
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

// setting returns the first variable in names that is set, and its name.
func setting(env func(string) string, names string) (value, name string) {
	for name = range strings.FieldsSeq(names) {
		if value = strings.TrimSpace(env(name)); value != "" {
			return value, name
		}
	}
	return "", ""
}

// hook returns a hook for steps, or nil without traces.
func (t *traces) hook() steps.Hook {
	if t == nil {
		return nil
	}
	return tracing.New(t.provider)
}

// within returns a context in which the run continues the trace that TRACEPARENT names, such as that of a pipeline.
func (t *traces) within(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": t.env("TRACEPARENT"), "tracestate": t.env("TRACESTATE")})
}

// end exports the remaining traces, for at most longest.
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

// collector exports spans. A failure is logged once, until an export succeeds again.
type collector struct {
	sdktrace.SpanExporter
	host, url string
	// secrets must not be shown if a response repeats them.
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

// why returns the beginning of an error without the URL, whose path may be a secret, and without the headers that were
// sent.
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

// quiet logs what kind of SDK setting is wrong, without its value.
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
