package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Auth is how to show oneself to a server, and how to recognize it. It never prints its
// secrets.
type Auth struct {
	// Username and Password for basic authentication. Hosts that take tokens take them
	// as the password, with any username.
	Username, Password string
	// BearerToken is sent instead of a username and a password.
	BearerToken string
	// CABundle holds the certificate authorities, in PEM, that the server's certificate is
	// checked against besides the system's.
	CABundle []byte
}

// String names what is given, not its value.
func (a Auth) String() string {
	switch {
	case a.BearerToken != "":
		return "bearer token"
	case a.Given():
		return "username and password"
	default:
		return "none"
	}
}

// GoString keeps %#v from printing secrets.
func (a Auth) GoString() string { return fmt.Sprintf("remote.Auth{%s}", a) }

// LogValue keeps logs from printing secrets.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Given says whether there are credentials.
func (a Auth) Given() bool { return a.Username != "" || a.Password != "" || a.BearerToken != "" }

func (a Auth) method() transport.AuthMethod {
	switch {
	case a.BearerToken != "":
		return &githttp.TokenAuth{Token: a.BearerToken}
	case a.Given():
		return &githttp.BasicAuth{Username: a.Username, Password: a.Password}
	default:
		return nil
	}
}

// Check says what is wrong with it, before anything is asked.
func (a Auth) Check() error {
	_, err := a.client()
	return err
}

// client is an HTTP client of its own: nothing is shared with the rest of the process but
// the proxy settings of the environment.
func (a Auth) client() (*http.Client, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
	}
	if len(a.CABundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(a.CABundle) {
			return nil, errors.New("the CA bundle holds no certificate in PEM")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}
