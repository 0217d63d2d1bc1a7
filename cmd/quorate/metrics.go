package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/spf13/cobra"

	"quorate.dev/quorate/reconcile/notify/deliver"
)

// timeToPush is the timeout for each request at the end of a run.
const timeToPush = 10 * time.Second

// metricsFlags specify where a run reports its result.
type metricsFlags struct {
	file string
	// pushgateway and heartbeat are URLs, which check parses into to and beats. They do not implement pflag.Value,
	// because pflag's errors would contain the URL.
	pushgateway, heartbeat string
	to, beats              endpoint
	job                    string
}

func (f *metricsFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "metrics-file", "",
		"file to write metrics to when the run ends, in a directory that node_exporter reads, such as quorate.prom")
	c.Flags().StringVar(&f.pushgateway, "pushgateway", "",
		"URL of a Prometheus Pushgateway to push metrics to when the run ends")
	c.Flags().StringVar(&f.job, "pushgateway-job", "quorate",
		"job name for pushed metrics, which replace metrics pushed earlier with the same job name")
	c.Flags().StringVar(&f.heartbeat, "heartbeat", "",
		"URL to GET after a successful run (exit code 0 or 2), for a dead man's switch "+
			"that alerts if a request is missing")
}

// check rejects settings that would fail at the end of the run.
func (f *metricsFlags) check() error {
	var err error
	if f.to, err = parseEndpoint(f.pushgateway); err != nil {
		return usageError{fmt.Errorf("metrics.pushgateway: %w", err)}
	}
	if f.beats, err = parseEndpoint(f.heartbeat); err != nil {
		return usageError{fmt.Errorf("metrics.heartbeat: %w", err)}
	}
	if f.to.given() && f.job == "" {
		return usageError{errors.New("metrics.pushgatewayJob: expected a job name")}
	}
	return nil
}

// tell exports the metrics of a run that ended with err, and sends the heartbeat if the run was successful. Failures
// are logged as warnings and do not affect the run.
func (f *metricsFlags) tell(ctx context.Context, log *slog.Logger, counted prometheus.Gatherer, err error) {
	ctx = context.WithoutCancel(ctx) // a stopped run is also reported
	if f.file != "" {
		if err := prometheus.WriteToTextfile(f.file, counted); err != nil {
			log.Warn("write metrics", "error", err)
		}
	}
	if f.to.given() {
		if err := f.push(ctx, counted); err != nil {
			log.Warn("push metrics", "error", err)
		}
	}
	var code exit
	well := err == nil || errors.As(err, &code) && code == exitChanges
	if f.beats.given() && well {
		if err := f.beat(ctx); err != nil {
			log.Warn("send the heartbeat", "error", err)
		}
	}
}

// push replaces all metrics that were pushed under the same job name, so that metrics of deleted clusters are removed.
func (f *metricsFlags) push(ctx context.Context, from prometheus.Gatherer) error {
	ctx, cancel := context.WithTimeout(ctx, timeToPush)
	defer cancel()
	base, user := f.to.withoutUser()
	pusher := push.New(base, f.job).Gatherer(from).Client(client())
	if user != nil {
		password, _ := user.Password()
		pusher.BasicAuth(user.Username(), password)
	}
	if err := pusher.PushContext(ctx); err != nil {
		return f.to.failure(err)
	}
	return nil
}

// beat requests the URL of the dead man's switch.
func (f *metricsFlags) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeToPush)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.beats.url.String(), nil)
	if err != nil {
		return f.beats.failure(err)
	}
	request.Header.Set("User-Agent", "quorate/"+version())
	response, err := client().Do(request)
	if err != nil {
		return f.beats.failure(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return f.beats.failure(errors.New(response.Status))
	}
	return nil
}

// client returns an HTTP client that does not follow redirects, because the credentials must be sent only to the given
// host. It truncates responses, because only their beginning is shown.
func client() *http.Client {
	return &http.Client{
		Transport:     briefly{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// mostOfAnswer is the maximum number of bytes read from a response, and mostOfFailure the maximum number shown.
// mostOfAnswer is much larger, because truncation could cut a secret in two, and because hiding secrets shortens the
// text.
const mostOfAnswer, mostOfFailure = 1 << 20, 500

// briefly truncates responses to mostOfAnswer.
type briefly struct{ http.RoundTripper }

func (b briefly) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = brief{io.LimitReader(response.Body, mostOfAnswer), response.Body}
	}
	return response, err
}

type brief struct {
	io.Reader
	io.Closer
}

// endpoint is the URL of a service. It may contain a password or be secret itself, so errors show only the host.
type endpoint struct{ url *url.URL }

// parseEndpoint parses a URL. If text is empty, it returns an endpoint without a URL.
func parseEndpoint(text string) (endpoint, error) {
	if text == "" {
		return endpoint{}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return endpoint{}, errors.New("expected a URL, https://HOST/PATH or http://HOST/PATH")
	case u.User != nil && u.Scheme == "http" && !isLoopback(u.Hostname()):
		return endpoint{}, fmt.Errorf(
			"the credentials in the URL would cross the network to %s unencrypted; use https", u.Host)
	}
	return endpoint{u}, nil
}

func (e endpoint) given() bool { return e.url != nil }

// withoutUser returns the URL without credentials, and the credentials, or nil if there are none.
func (e endpoint) withoutUser() (string, *url.Userinfo) {
	bare := *e.url
	bare.User = nil
	return bare.String(), e.url.User
}

// failure returns the reason why a request failed, without secrets, which may occur in library errors that contain the
// URL and in responses that repeat the request.
func (e endpoint) failure(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	bare, _ := e.withoutUser()
	text := strings.ReplaceAll(err.Error(), strings.TrimSuffix(bare, "/"), e.url.Host)
	text = deliver.Hide(text, e.url.String(), nil, mostOfFailure)
	return fmt.Errorf("%s: %s", e.url.Host, text)
}

// isLoopback reports whether host is localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
