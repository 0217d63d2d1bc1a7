package main

import (
	"context"
	"encoding/base64"
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

// timeToPush is how long each of those may take that a run tells of its end.
const timeToPush = 10 * time.Second

// metricsFlags say whom a run tells how it has ended.
type metricsFlags struct {
	file string
	// pushgateway and heartbeat are URLs, and to and beats what check has made of them. They are no values of their
	// own type, since what is said of a value that is refused has the value in it.
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
		"job to push metrics as: what was pushed as the same job before is replaced")
	c.Flags().StringVar(&f.heartbeat, "heartbeat", "",
		"URL to GET when the run has ended well, with exit code 0 or 2: a dead-man switch raises the alarm "+
			"if that does not happen")
}

// check refuses what could not be done once the run has ended.
func (f *metricsFlags) check() error {
	var err error
	if f.to, err = parseEndpoint(f.pushgateway); err != nil {
		return usageError{fmt.Errorf("--pushgateway: %w", err)}
	}
	if f.beats, err = parseEndpoint(f.heartbeat); err != nil {
		return usageError{fmt.Errorf("--heartbeat: %w", err)}
	}
	if f.to.given() && f.job == "" {
		return usageError{errors.New("--pushgateway-job: want the name of a job")}
	}
	return nil
}

// tell tells of a run that has ended with this error, its exit code, and of what was counted meanwhile. What fails of
// that is a warning: it changes nothing about the run.
func (f *metricsFlags) tell(ctx context.Context, log *slog.Logger, counted prometheus.Gatherer, err error) {
	ctx = context.WithoutCancel(ctx) // a run that was told to stop has ended as well
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

// push replaces what was pushed as the same job before: clusters that are gone are gone there, too.
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

// beat asks for the URL of the dead-man switch.
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

// client follows no redirect: credentials are for whom they were given for. It reads little of an answer: all that is
// done with one is to show how it begins.
func client() *http.Client {
	return &http.Client{
		Transport:     briefly{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// mostOfAnswer is how much of an answer is read, and mostOfFailure how much is said of one, in bytes. What is read ends
// far behind what is said, even if that is much shorter once secrets are hidden: it may end within one.
const mostOfAnswer, mostOfFailure = 1 << 20, 500

// briefly ends answers after mostOfAnswer.
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

// endpoint is the URL of a service. It may hold a password, or be a secret in itself, so no error shows more of it
// than the host.
type endpoint struct{ url *url.URL }

// parseEndpoint reads a URL; an empty one is that of no service.
func parseEndpoint(text string) (endpoint, error) {
	if text == "" {
		return endpoint{}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return endpoint{}, errors.New("want a URL, https://HOST/PATH or http://HOST/PATH")
	case u.User != nil && u.Scheme == "http" && !isLoopback(u.Hostname()):
		return endpoint{}, fmt.Errorf(
			"the credentials in the URL would cross the network to %s in the clear; use https", u.Host)
	}
	return endpoint{u}, nil
}

func (e endpoint) given() bool { return e.url != nil }

// withoutUser is the URL without credentials, and these; nil if there are none.
func (e endpoint) withoutUser() (string, *url.Userinfo) {
	bare := *e.url
	bare.User = nil
	return bare.String(), e.url.User
}

// failure says why an endpoint could not be told. It knows the ways in which libraries put the URL into errors, and
// answers that repeat what was sent.
func (e endpoint) failure(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	bare, user := e.withoutUser()
	text := strings.ReplaceAll(err.Error(), strings.TrimSuffix(bare, "/"), e.url.Host)
	return fmt.Errorf("%s: %s", e.url.Host, deliver.Hide(text, e.url.String(), secretsOf(user), mostOfFailure))
}

// secretsOf are the credentials, in all the forms in which they may be repeated.
func secretsOf(user *url.Userinfo) []string {
	if user == nil {
		return nil
	}
	password, has := user.Password()
	basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
	if !has {
		password = user.Username() // a token
	}
	return []string{basic, password, url.QueryEscape(password), url.PathEscape(password)}
}

// isLoopback says whether what is sent to that host leaves the machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
