// Package deliver sends the output of package notify: messages to webhooks, and commit statuses to git hosts.
package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/internal/printable"
)

// request is an HTTP request that may be retried.
type request struct {
	method, url string
	header      http.Header
	body        []byte
	// secrets are removed from errors, because a response may repeat them.
	secrets []string
}

const (
	// longestTry is the timeout of one attempt.
	longestTry = 10 * time.Second
	// firstPause is the pause before the first retry. The pause doubles with each retry.
	firstPause = 500 * time.Millisecond
	// mostTries is the maximum number of attempts.
	mostTries = 5
	// mostOfAnswer is the maximum number of response bytes read, and mostShown the maximum number shown. mostOfError is
	// the maximum number of bytes shown of an error that may quote a response.
	mostOfAnswer, mostShown, mostOfError = 1 << 20, 200, 300
)

// client does not follow redirects, because the credentials are intended only for the configured host.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// failure is an unsuccessful response.
type failure struct {
	code  int
	after time.Duration
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// do sends the request and returns the response body. It retries transient errors as long as the deadline of ctx
// allows, with up to mostTries attempts. Errors contain only the host, because the rest of the URL may be secret.
func (r request) do(ctx context.Context, agent string) ([]byte, error) {
	pause := firstPause
	for try := 1; ; try++ {
		body, err := r.once(ctx, agent)
		if err == nil {
			return body, nil
		}
		wait := pause
		if f, is := errors.AsType[*failure](err); is {
			if f.code != http.StatusTooManyRequests && f.code/100 != 5 {
				return nil, err
			}
			wait = max(wait, f.after)
		}
		deadline, bounded := ctx.Deadline()
		if try == mostTries || bounded && time.Until(deadline) <= wait {
			return nil, err
		}
		pause *= 2
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-timer.C:
		}
	}
}

func (r request) once(ctx context.Context, agent string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, &failure{err: errors.New("the URL is not valid")}
	}
	host := printable.Line(req.URL.Host)
	req.Header = r.header.Clone()
	req.Header.Set("User-Agent", agent)
	resp, err := client.Do(req)
	if err != nil {
		if of, is := errors.AsType[*url.Error](err); is {
			err = of.Err
		}
		return nil, fmt.Errorf("%s: %s", host, r.hide(err.Error(), mostOfError))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostOfAnswer))
	switch {
	case resp.StatusCode/100 == 2 && err == nil:
		return body, nil
	case resp.StatusCode/100 == 2:
		return nil, fmt.Errorf("%s: read the response: %s", host, r.hide(err.Error(), mostOfError))
	case resp.StatusCode/100 == 3:
		err = fmt.Errorf("%s: status %d is a redirect; redirects are not followed", host, resp.StatusCode)
	default:
		err = fmt.Errorf("%s: %d %s%s", host, resp.StatusCode, http.StatusText(resp.StatusCode), r.excerpt(body))
	}
	return nil, &failure{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After")), err}
}

// excerpt returns the beginning of a response without the secrets. Web pages are omitted: they seldom contain the
// cause.
func (r request) excerpt(body []byte) string {
	if strings.HasPrefix(http.DetectContentType(body), "text/html") {
		return ""
	}
	text := r.hide(strings.TrimSpace(string(body)), mostShown)
	if text == "" {
		return ""
	}
	return ": " + text
}

func (r request) hide(text string, most int) string { return Hide(text, r.url, r.secrets, most) }

// retryAfter returns the delay requested by a Retry-After header, or zero if its value is empty or invalid.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < 0 || seconds > int((24*time.Hour).Seconds()) {
		at, err := http.ParseTime(value)
		if err != nil {
			return 0
		}
		return max(time.Until(at), 0)
	}
	return time.Duration(seconds) * time.Second
}
