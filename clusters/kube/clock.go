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

// stepped is the maximum deviation between this machine's wall clock and its monotonic clock. If they deviate more, the
// clock was set or the machine was suspended, and times derived from both are invalid.
const stepped = 5 * time.Second

var errNoClock = errors.New("its responses do not contain the time. Make sure that proxies forward the Date header")

// clock is the API server's clock according to its newest response. Reading it does not require a request.
type clock struct {
	mu sync.Mutex
	// got is the time on this machine's clock when the newest response arrived. earliest and latest are the bounds of
	// the API server's time at that moment. All are zero before the first response.
	got, earliest, latest time.Time
}

// now returns the time on the API server's clock: this machine's time, limited to the possible range of the API
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
		return time.Time{}, fmt.Errorf("this machine's clock moved by %s in %s; the API server's time is unknown "+
			"until its next response", moved.Round(time.Second), passed.Round(time.Second))
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

// WrappedRoundTripper lets client-go find the underlying transport.
func (c *clocked) WrappedRoundTripper() http.RoundTripper { return c.next }

// Now returns the time on the API server's clock, derived from the newest response, without sending a request. Use it
// to evaluate timestamps that were set by the API server or by nodes.
func (c *Client) Now() (time.Time, error) {
	now, err := c.told.now()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the API server's clock: %w", err)
	}
	return now, nil
}

// Clock requests the time from the API server, in seconds. It does not need any rights, because every response contains
// the time, even a rejection.
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
