package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// stepped is how far this machine's wall clock may deviate from its monotonic clock before times derived from
// both are invalid: the clock was set, or the machine was suspended.
const stepped = 5 * time.Second

var errNoClock = errors.New("its responses do not contain the time. Make sure that proxies forward the Date header")

// clock is the API server's clock according to its newest response. It costs no request.
type clock struct {
	mu sync.Mutex
	// got is when the newest response arrived, by this machine's clock. earliest and latest limit the API server's
	// time at that moment. They are zero before the first response.
	got, earliest, latest time.Time
}

// now returns the time by the API server's clock: this machine's time, limited to the possible range of the API
// server's time. The range is not exact, because responses contain the time in seconds and take a while to arrive.
func (c *clock) now() (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	passed := here.Sub(c.got)
	if c.got.IsZero() {
		return time.Time{}, errNoClock
	}
	if moved := here.Round(0).Sub(c.got.Round(0)); (moved - passed).Abs() > stepped {
		return time.Time{}, fmt.Errorf("this machine's clock moved by %s in %s; the API server's time is unknown until "+
			"its next response", moved.Round(time.Second), passed.Round(time.Second))
	}
	here = here.Round(0)
	switch earliest, latest := c.earliest.Add(passed), c.latest.Add(passed); {
	case here.Before(earliest):
		return earliest, nil
	case here.After(latest):
		return latest, nil
	}
	return here, nil
}

// reads updates the clock from each response with a Date header.
func (c *clock) reads(next http.RoundTripper) http.RoundTripper { return &clocked{next, c} }

// clocked is a transport that updates a clock from responses.
type clocked struct {
	next  http.RoundTripper
	clock *clock
}

// RoundTrip implements http.RoundTripper.
func (c *clocked) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := c.next.RoundTrip(r)
	if err != nil || answer == nil {
		return answer, err
	}
	if date, unreadable := http.ParseTime(answer.Header.Get("Date")); unreadable == nil {
		got := time.Now()
		c.clock.mu.Lock()
		c.clock.got, c.clock.earliest, c.clock.latest = got, date.UTC(), date.UTC().Add(time.Second+got.Sub(sent))
		c.clock.mu.Unlock()
	}
	return answer, nil
}

// WrappedRoundTripper is for client-go, which looks for the underlying transport.
func (c *clocked) WrappedRoundTripper() http.RoundTripper { return c.next }

// Now returns the time by the API server's clock. Use it to compare timestamps set by the API server or by nodes. It
// does not make a request, but uses the newest response to any request.
func (c *Client) Now() (time.Time, error) {
	now, err := c.told.now()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the API server's clock: %w", err)
	}
	return now, nil
}

// Clock asks the API server for its time, to the second. It needs no rights: every response contains the time,
// even a rejection.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	now, err := c.clock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
	}
	return now, nil
}

func (c *Client) clock(ctx context.Context) (time.Time, error) {
	server, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return time.Time{}, err
	}
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return time.Time{}, err
	}
	defer answer.Body.Close()
	return http.ParseTime(answer.Header.Get("Date"))
}
