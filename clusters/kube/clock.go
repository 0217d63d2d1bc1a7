package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Clock asks the API server what time it is, to the second. It needs no right: every answer says so,
// a refusal included.
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
