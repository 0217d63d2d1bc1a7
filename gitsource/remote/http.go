package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"quorate.dev/quorate/internal/printable"
)

// httpClient sends requests to one server. It does not share anything with the rest of the process except the proxy
// settings in the environment.
type httpClient struct {
	address *url.URL
	// own connects to the repository's server, with the client certificate. others connects to redirect targets and to
	// GitHub's API.
	own, others *http.Transport
	// redirected is the server to which the repository's server redirected a request, as a URL without a path.
	redirected string
	// sent holds the secrets that are known before the first request, and the secrets sent with every request.
	sent   []string
	limits Limits
}

func newHTTPClient(r Repository, address *url.URL) (*httpClient, error) {
	proxy := http.ProxyFromEnvironment
	if r.Proxy != "" {
		u, err := url.Parse(r.Proxy)
		if err != nil {
			return nil, errors.New("the proxy is not a valid URL")
		}
		proxy = http.ProxyURL(u)
	}
	c := &httpClient{address: address, sent: r.Auth.secrets(), limits: r.Limits.OrDefault()}
	c.others = &http.Transport{
		Proxy: func(request *http.Request) (*url.URL, error) {
			u, err := proxy(request)
			if u = r.Auth.withProxyCredentials(u); u != nil {
				c.sent = append(c.sent, printable.Credentials(u.User)...)
			}
			return u, err
		},
		OnProxyConnectResponse: proxyAnswered,
		TLSClientConfig:        r.Auth.tlsConfig(),
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
	}
	c.own = c.others
	if len(r.Auth.ClientCertificate) > 0 {
		certificate, err := tls.X509KeyPair(r.Auth.ClientCertificate, r.Auth.ClientKey)
		if err != nil {
			return nil, errors.New("tls.crt and tls.key are not a PEM certificate and its private key")
		}
		c.own = c.others.Clone()
		c.own.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	return c, nil
}

// open starts a session without sending the first git request.
func (c *httpClient) open(ctx context.Context, auth Auth) (transport.UploadPackSession, error) {
	if auth.GitHubApp.given() {
		api := &http.Client{Transport: noting{c.others, c},
			CheckRedirect: func(*http.Request, []*http.Request) error { return errAPIRedirects }}
		token, err := auth.GitHubApp.token(ctx, api, repositoryOf(c.address), time.Now())
		if err != nil {
			return nil, err
		}
		auth = Auth{Username: "x-access-token", Password: token}
	}
	endpoint, err := transport.NewEndpoint(c.address.String())
	if err != nil {
		return nil, errors.New("the source is not a valid URL")
	}
	git := &http.Client{Transport: boundedTransport{noting{c, c}, c.limits}, CheckRedirect: c.follow}
	return githttp.NewClient(git).NewUploadPackSession(endpoint, auth.method())
}

var errAPIRedirects = explainedError{errors.New(
	"the GitHub API redirected the request, and the key is not sent elsewhere; check githubAppBaseURL")}

// RoundTrip sends one request.
func (c *httpClient) RoundTrip(request *http.Request) (*http.Response, error) {
	if origin(request.URL) == origin(c.address) {
		return c.own.RoundTrip(request)
	}
	return c.others.RoundTrip(request)
}

// noting records the credentials of each request before it is sent, because a response may repeat them.
type noting struct {
	http.RoundTripper
	client *httpClient
}

// RoundTrip sends one request.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	_, credentials, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	_, password, _ := request.BasicAuth()
	n.client.sent = append(n.client.sent, credentials, password)
	return n.RoundTripper.RoundTrip(request)
}

// close closes idle connections.
func (c *httpClient) close() {
	c.own.CloseIdleConnections()
	c.others.CloseIdleConnections()
}

// follow records the target of a redirect. go-git follows a redirect to another server only for the first request and
// without credentials, and never follows a redirect from https to http.
func (c *httpClient) follow(request *http.Request, _ []*http.Request) error {
	if to := origin(request.URL); to != origin(c.address) {
		c.redirected = to
	}
	return nil
}

// origin returns the URL of a server, without a path.
func origin(u *url.URL) string { return u.Scheme + "://" + Host(u) }

// Host returns a URL's host in lower case, with its port unless it is the default port for https or http.
func Host(u *url.URL) string {
	port := u.Port()
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	host := strings.ToLower(u.Hostname())
	if port != "" {
		host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host
}

// proxyAnswered returns an error if a proxy refuses to connect. The error does not repeat the proxy's words.
func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	return proxyStatus(proxy, response.StatusCode)
}

func proxyStatus(proxy *url.URL, status int) error {
	at := origin(proxy)
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusProxyAuthRequired && proxy.User == nil:
		return explainedError{fmt.Errorf("the proxy %s requires credentials, but none are configured: "+
			"set proxyUsername and proxyPassword",
			at)}
	case status == http.StatusProxyAuthRequired:
		return explainedError{fmt.Errorf("the proxy %s refused proxyUsername and proxyPassword", at)}
	}
	return explainedError{fmt.Errorf("the proxy %s did not connect to the server (status %d)", at, status)}
}
