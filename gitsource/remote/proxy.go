package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"

	"quorate.dev/quorate/internal/printable"
)

// dial connects to host, through the proxy if one is set. Proxies from the environment are only used for HTTP, as in
// git.
func (r Repository) dial(ctx context.Context, host string) (net.Conn, error) {
	var direct net.Dialer
	if r.Proxy == "" {
		return direct.DialContext(ctx, "tcp", host)
	}
	u, err := url.Parse(r.Proxy)
	if err != nil {
		return nil, errors.New("the proxy is not a valid URL")
	}
	u = r.Auth.withProxyCredentials(u)
	if u.Scheme != "socks5" {
		return r.dialHTTP(ctx, u, host)
	}
	through, err := proxy.FromURL(u, &direct)
	if err != nil {
		return nil, err
	}
	connection, err := through.(proxy.ContextDialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, proxyFailed(u, err)
	}
	return connection, nil
}

// dialHTTP requests a tunnel from an HTTP proxy.
func (r Repository) dialHTTP(ctx context.Context, u *url.URL, host string) (net.Conn, error) {
	at := net.JoinHostPort(u.Hostname(), orDefault(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	connection, err := dialProxy(ctx, u, at, r.Auth)
	if err != nil {
		return nil, proxyFailed(u, err)
	}
	defer closeAtEnd(ctx, connection)()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if password, ok := u.User.Password(); ok {
		request.SetBasicAuth(u.User.Username(), password)
		request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"]}
	}
	// Read one byte at a time, because the data after the header belongs to the server.
	answer := bufio.NewReaderSize(io.LimitReader(oneByte{connection}, maxHeaderBytes), 16)
	if err = request.Write(connection); err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(answer, request); err == nil {
			err = proxyStatus(u, response.StatusCode)
		}
	}
	if err != nil {
		connection.Close()
		return nil, proxyFailed(u, err)
	}
	return connection, nil
}

// maxHeaderBytes is the maximum size of the header of a proxy's response.
const maxHeaderBytes = 64 << 10

// oneByte returns one byte per read, so that a buffering reader does not read more than it needs.
type oneByte struct{ io.Reader }

// Read implements io.Reader.
func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:min(len(p), 1)]) }

// dialProxy connects to an HTTP proxy, with TLS if its scheme is https.
func dialProxy(ctx context.Context, u *url.URL, at string, auth Auth) (net.Conn, error) {
	if u.Scheme == "https" {
		return (&tls.Dialer{Config: auth.tlsConfig()}).DialContext(ctx, "tcp", at)
	}
	var direct net.Dialer
	return direct.DialContext(ctx, "tcp", at)
}

func proxyFailed(u *url.URL, err error) error {
	if _, ok := errors.AsType[explainedError](err); ok {
		return err
	}
	return explainedError{fmt.Errorf("the proxy %s did not connect to the server: %w", origin(u),
		safeError(err, printable.Credentials(u.User)...))}
}
