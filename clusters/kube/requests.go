package kube

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// Verbs returns the verbs that Counted passes to count.
func Verbs() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "apply", "delete", "connect", "other"}
}

// Counted returns a copy of config that calls count for every response, including retries and port-forward handshakes.
// It passes the verb (one of Verbs) and the HTTP status, or 0 if there was no response, as for a refused port-forward.
func Counted(config *rest.Config, count func(verb string, status int)) *rest.Config {
	config = rest.CopyConfig(config)
	base := ""
	if u, err := url.Parse(config.Host); err == nil && u.Host != "" {
		base = u.Path
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counter{next, base, count} })
	return config
}

// counter counts requests.
type counter struct {
	next http.RoundTripper
	// base is the path of the API server.
	base  string
	count func(verb string, status int)
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := verbOf(r, c.base) // the next transport may change the request
	answer, err := c.next.RoundTrip(r)
	status := 0
	if err == nil && answer != nil {
		status = answer.StatusCode
	}
	c.count(verb, status)
	return answer, err
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (c *counter) WrappedRoundTripper() http.RoundTripper { return c.next }

// connecting lists the subresources that establish connections.
var connecting = []string{"portforward", "exec", "attach", "proxy"}

// verbOf returns the verb of a request as the API server defines it, except that apply has its own verb.
func verbOf(r *http.Request, base string) string {
	about := resourceOf(strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(base, "/")))
	if len(about) > 2 && slices.Contains(connecting, about[2]) {
		return "connect"
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
			return "watch"
		case len(about) == 1:
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "other"
}

// resourceOf returns the parts of a path from the resource on, such as pods/NAME/SUBRESOURCE, or nil if the path does
// not refer to a resource.
func resourceOf(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := map[string]int{"api": 2, "apis": 3}[parts[0]] // /api/v1, /apis/GROUP/VERSION
	if version == 0 || len(parts) <= version {
		return nil
	}
	parts = parts[version:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		return parts[2:]
	}
	return parts
}
