package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collected "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/gitsource/gittest"
)

// taken is what a fake collector has received.
type taken struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // METHOD PATH AUTHORIZATION
	raw   bytes.Buffer
	spans []*otlp.Span
	about string // the resource
}

func newCollector(t *testing.T) *taken {
	t.Helper()
	c := &taken{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collected.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%v, %s", err, r.Header)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		c.raw.Write(body)
		for _, of := range sent.GetResourceSpans() {
			c.about = of.GetResource().String()
			for _, s := range of.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// shown returns the sorted span names, each with the name of its parent.
func (c *taken) shown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]string{}
	for _, s := range c.spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	var lines []string
	for _, s := range c.spans {
		line := s.GetName()
		if len(s.GetParentSpanId()) > 0 {
			line += " in " + names[string(s.GetParentSpanId())]
		}
		lines = append(lines, line+" "+s.GetStatus().GetCode().String())
	}
	slices.Sort(lines)
	return lines
}

// traced runs this program as a process with these environment variables, and returns its exit code, output and
// duration.
func traced(t *testing.T, env []string, args ...string) (code int, said string, took time.Duration) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(append(os.Environ(), runsMain+"=1"), env...)
	began := time.Now()
	out, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(out), time.Since(began)
}

func source1(t *testing.T) string {
	t.Helper()
	r := gittest.NewRepository(t)
	r.Declare("a")
	return r.Dir
}

// A run is a trace within the trace of its pipeline, and the collector receives the resource attributes.
func TestTraces(t *testing.T) {
	c := newCollector(t)
	code, said, _ := traced(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20s3cret", "OTEL_RESOURCE_ATTRIBUTES=team=shop",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}, "run", "--source", source1(t), "--kubeconfig", refusing(t))
	if code != exitError || strings.Contains(said, "traces") || strings.Contains(said, "s3cret") {
		t.Errorf("code %d: %s", code, said)
	}
	if want := []string{"POST /v1/traces Bearer s3cret"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked for %q, want %q", c.asked, want)
	}
	want := []string{"fetch in quorate run STATUS_CODE_UNSET", "list in pass STATUS_CODE_ERROR", "pass in quorate run STATUS_CODE_ERROR", "quorate run in  STATUS_CODE_ERROR"}
	if got := c.shown(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, s := range c.spans {
		if fmt.Sprintf("%x", s.GetTraceId()) != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace %x", s.GetName(), s.GetTraceId())
		}
		if s.GetName() == "quorate run" && fmt.Sprintf("%x", s.GetParentSpanId()) != "b7ad6b7169203331" {
			t.Errorf("the run is in the span %x", s.GetParentSpanId())
		}
	}
	for _, of := range []string{`"service.name"`, `"quorate"`, `"service.version"`, `"team"`, `"shop"`} {
		if !strings.Contains(strings.ReplaceAll(c.about, `key:`, ""), of) {
			t.Errorf("no %s in %s", of, c.about)
		}
	}
}

// Each pass of a loop is a separate trace, whatever started the loop, and unsent spans are sent at the end.
func TestTracesOfALoop(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/elsewhere")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	kubeconfig, dir := refusing(t), source1(t)
	go func() {
		ended <- execute(ctx, []string{"run", "--loop", "--source", dir, "--kubeconfig", kubeconfig}, streams{out: io.Discard, err: io.Discard})
	}()
	passes := func() (n int) {
		for _, s := range c.shown() {
			if s == "pass STATUS_CODE_ERROR" {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(20 * time.Second); passes() < 2 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if code := <-ended; code != exitOK || passes() < 2 || !slices.Contains(c.shown(), "fetch STATUS_CODE_UNSET") || c.asked[0] != "POST /elsewhere " {
		t.Errorf("code %d, asked for %q, got %q", code, c.asked, c.shown())
	}
	for _, s := range c.spans {
		if fmt.Sprintf("%x", s.GetTraceId()) == "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace of what started the loop", s.GetName())
		}
	}
}

// hanging returns the URL of a server that accepts connections and never responds.
func hanging(t *testing.T) string {
	t.Helper()
	until := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-until }))
	t.Cleanup(func() { close(until); server.Close() })
	return server.URL
}

// A collector that is down, hangs or refuses does not affect a run, except that the run ends up to three seconds later.
// The collector's URL may be a secret.
func TestCollectorInTrouble(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	dir, kubeconfig := source1(t), refusing(t)
	_, _, without := traced(t, nil, "run", "--source", dir, "--kubeconfig", kubeconfig)
	for name, url := range map[string]string{"gone": gone.URL, "hanging": hanging(t), "busy": busy.URL, "refuses": refuses.URL} {
		t.Run(name, func(t *testing.T) {
			code, said, took := traced(t, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + url + "/s3cret"}, "run", "--source", dir, "--kubeconfig", kubeconfig)
			if code != exitError || strings.Count(said, `msg="send traces"`) != 1 || strings.Contains(said, "s3cret") || !strings.Contains(said, "to="+strings.TrimPrefix(url, "http://")) {
				t.Errorf("code %d: %s", code, said)
			}
			if given := name == "hanging"; given != strings.Contains(said, "not all were taken within 3s") {
				t.Errorf("given up: want %t: %s", given, said)
			}
			if took > without+timeToFlush+20*time.Second { // the machine may be busy
				t.Errorf("it took %s, and %s without traces", took, without)
			}
		})
	}
}

// A collector that redirects, or repeats what it received, does not reveal headers, because they may be credentials.
func TestHeadersStayWithTheCollector(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, test := range map[string]struct {
		says   string
		answer http.HandlerFunc
	}{
		"301": {"no redirect is followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusMovedPermanently)
		}},
		"307": {"no redirect is followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}},
		"308": {"no redirect is followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/there", http.StatusPermanentRedirect)
		}},
		"repeats": {"401 Unauthorized (body: no", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "no ", r.Header, r.Header.Get("api-key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL, strings.Repeat(" x", 1<<20))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first := httptest.NewServer(test.answer)
			defer first.Close()
			code, said, _ := traced(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + first.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=s3cret%2Fkey,authorization=Bearer%20s3cret"},
				"run", "--source", source1(t), "--kubeconfig", refusing(t))
			if code != exitError || strings.Contains(said, "s3cret") || !strings.Contains(said, test.says) || len(said) > 4<<10 {
				t.Errorf("code %d: %.4096s", code, said)
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// A run that is out of time does not wait long.
func TestFlushIsHurried(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	url := hanging(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	for _, longest := range []time.Duration{hurriedFlush, timeToFlush} {
		traces := newTraces(t.Context(), os.Getenv, logger)
		_, span := traces.provider.Tracer("x").Start(t.Context(), "x")
		span.End()
		began := time.Now()
		if traces.end(t.Context(), longest); time.Since(began) < longest || time.Since(began) > longest+6*time.Second {
			t.Errorf("it took %s, want %s", time.Since(began), longest)
		}
	}
	code, said, took := traced(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url}, "run", "--source", source1(t), "--timeout", "1s",
		"--kubeconfig", kubeconfigTo(t, hanging(t)))
	if code != exitError || !strings.Contains(said, "not all were taken within 1s") {
		t.Errorf("code %d after %s: %s", code, took, said)
	}
}

// environment returns an environment with only these variables.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// Traces are exported if the environment sets a valid endpoint. Invalid settings are not shown.
func TestTracesAreOffByDefault(t *testing.T) {
	const endpoint, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	for _, c := range []struct {
		env        []string
		host, says string
	}{
		{nil, "", ""},
		{[]string{"OTEL_SERVICE_NAME", "x", "OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_HEADERS", "a=b"}, "", ""},
		{[]string{endpoint, "http://tempo:4318"}, "tempo:4318", ""},
		{[]string{endpoint, "https://tempo/prefix", protocol, "http/protobuf"}, "tempo", ""},
		{[]string{endpoint, "http://one:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://two:4318/v1/traces"}, "two:4318", ""},
		{[]string{endpoint, "http://tempo:4318", "OTEL_SDK_DISABLED", "True"}, "", ""},
		{[]string{endpoint, "http://tempo:4318", "OTEL_TRACES_EXPORTER", "none"}, "", ""},
		{[]string{endpoint, "http://tempo:4318", "OTEL_TRACES_EXPORTER", "zipkin"}, "", "OTEL_TRACES_EXPORTER: want otlp or none"},
		{[]string{endpoint, "http://tempo:4317", protocol, "grpc"}, "", protocol + ": grpc is not supported"},
		{[]string{endpoint, "http://tempo:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"}, "", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: grpc is not supported"},
		{[]string{endpoint, "http://tempo:4318", protocol, "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"}, "tempo:4318", ""},
		{[]string{endpoint, "tempo:4318/s3cret"}, "", endpoint + ": want a URL"},
		{[]string{endpoint, "https://me:s3cret@%zz"}, "", endpoint + ": want a URL"},
		{[]string{endpoint, "unix:///s3cret"}, "", endpoint + ": want a URL"},
		{[]string{endpoint, "https://me:s3cret@tempo"}, "", "the URL of tempo holds credentials"},
	} {
		host, err := tracesTo(environment(c.env...))
		if host != c.host || (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%q: %q, %v", c.env, host, err)
		}
		if c.host != "" {
			continue
		}
		var log bytes.Buffer
		traces := newTraces(t.Context(), environment(c.env...), slog.New(slog.NewTextHandler(&log, nil)))
		if traces != nil || traces.hook() != nil || traces.within(t.Context()) != t.Context() || strings.Contains(log.String(), "make no traces") != (c.says != "") {
			t.Errorf("%q: there are traces; %s", c.env, log.String())
		}
		traces.end(t.Context(), time.Hour)
	}
}

// Settings that the SDK cannot parse are not shown, because they may be secrets. Neither are sources with passwords.
func TestTracesKeepSecrets(t *testing.T) {
	c := newCollector(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=s3cret,authorization=%zzs3cret,s3 cret=s3cret",
		"OTEL_EXPORTER_OTLP_TIMEOUT=s3cret", "OTEL_RESOURCE_ATTRIBUTES=s3cret", "OTEL_EXPORTER_OTLP_CERTIFICATE=/s3cret", "OTEL_TRACES_SAMPLER=s3cret",
		"OTEL_BSP_SCHEDULE_DELAY=s3cret", "TRACEPARENT=s3cret", "TRACESTATE=s3cret"}
	code, said, _ := traced(t, env, "run", "--source", source1(t), "--kubeconfig", refusing(t))
	if code != exitError || strings.Contains(said, "s3cret") || !strings.Contains(said, "OTEL_") {
		t.Errorf("code %d: %s", code, said)
	}
	for _, source := range []string{"https://me:s3cret@127.0.0.1:1/x.git", "https://127.0.0.1:1/x.git?token=s3cret", "ssh://git:s3cret@127.0.0.1:1/x.git",
		"https://me:s3cret@%zz/x.git", "https://127.0.0.1:1/x.git"} {
		code, said, _ := traced(t, env[:1], "run", "--source", source, "--source", source1(t), "--kubeconfig", refusing(t))
		if code == exitOK || strings.Contains(said, "s3cret") {
			t.Errorf("%s: code %d, %s", source, code, said)
		}
	}
	if c.raw.Len() == 0 || bytes.Contains(c.raw.Bytes(), []byte("s3cret")) {
		t.Errorf("sent %d bytes: %q", c.raw.Len(), c.raw.String())
	}
}

// A misspelled sampler is reported without showing it: the SDK would silently export all traces.
func TestMisspeltSampler(t *testing.T) {
	c := newCollector(t)
	for _, test := range []struct{ sampler, arg, says string }{
		{"", "", ""},
		{"", "s3cret", ""},
		{"always_off", "s3cret", ""},
		{" ParentBased_TraceIDRatio ", "0.25", ""},
		{"traceidratio", "", ""},
		{"traceidration", "0.25", "OTEL_TRACES_SAMPLER: want one of always_on, always_off, traceidratio"},
		{"s3cret", "", "OTEL_TRACES_SAMPLER: want one of"},
		{"traceidratio", "s3cret", "OTEL_TRACES_SAMPLER_ARG: want a ratio from 0 to 1"},
		{"parentbased_traceidratio", "25", "OTEL_TRACES_SAMPLER_ARG: want a ratio"},
		{"traceidratio", "-0.1", "OTEL_TRACES_SAMPLER_ARG: want a ratio"},
		{"traceidratio", "NaN", "OTEL_TRACES_SAMPLER_ARG: want a ratio"},
	} {
		var log bytes.Buffer
		env := environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_TRACES_SAMPLER", test.sampler, "OTEL_TRACES_SAMPLER_ARG", test.arg)
		traces := newTraces(t.Context(), env, slog.New(slog.NewTextHandler(&log, nil)))
		traces.end(t.Context(), time.Second)
		if said := log.String(); traces == nil || strings.Contains(said, "s3cret") || strings.Contains(said, "make all traces") != (test.says != "") ||
			!strings.Contains(said, test.says) {
			t.Errorf("%+v: %s", test, said)
		}
	}
}
