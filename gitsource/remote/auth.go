package remote

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"quorate.dev/quorate/internal/printable"
)

// Auth specifies how to authenticate to a server, and how to verify the server. It never prints its secrets.
type Auth struct {
	// Username and Password are used for basic authentication. Hosts that issue tokens accept a token as the password,
	// with any username. The default username is "git". For ssh, Username is the remote account if the URL does not
	// name one.
	Username, Password string
	// BearerToken is sent instead of a username and password.
	BearerToken string
	// GitHubApp obtains a token for each session, instead of a password.
	GitHubApp GitHubApp
	// CABundle holds, in PEM, the certificate authorities that are trusted in addition to the system's.
	CABundle []byte
	// CAOnly makes CABundle replace the system's authorities.
	CAOnly bool
	// ClientCertificate and ClientKey, in PEM, are presented to a TLS server that requests a client certificate.
	ClientCertificate, ClientKey []byte
	// Identity is a private key for ssh, in OpenSSH or PEM format. Passphrase decrypts the key if it is encrypted.
	Identity   []byte
	Passphrase string
	// KnownHosts is the path of a known_hosts file with the keys of ssh servers. Without this file, ssh servers are not
	// trusted.
	KnownHosts string
	// ProxyUsername and ProxyPassword are the credentials for the proxy.
	ProxyUsername, ProxyPassword string
}

// String returns the kind of credentials, not their value.
func (a Auth) String() string {
	switch {
	case len(a.Identity) > 0:
		return "ssh key"
	case a.GitHubApp.given():
		return "GitHub App"
	case a.BearerToken != "":
		return "bearer token"
	case a.Given():
		return "username and password"
	case len(a.ClientCertificate) > 0:
		return "client certificate"
	default:
		return "none"
	}
}

// GoString prevents %#v from printing secrets.
func (a Auth) GoString() string { return fmt.Sprintf("remote.Auth{%s}", a) }

// LogValue prevents logs from printing secrets.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Given reports whether there are credentials that would be sent over the network with each request.
func (a Auth) Given() bool {
	return a.Username != "" || a.Password != "" || a.BearerToken != "" || a.GitHubApp.given()
}

// secrets returns the credentials that must be hidden in text from a server.
func (a Auth) secrets() []string {
	secrets := []string{a.Password, a.BearerToken, a.Passphrase}
	if a.ProxyPassword != "" {
		secrets = append(secrets, printable.Credentials(url.UserPassword(a.ProxyUsername, a.ProxyPassword))...)
	}
	return secrets
}

func (a Auth) method() transport.AuthMethod {
	switch {
	case a.BearerToken != "":
		return &githttp.TokenAuth{Token: a.BearerToken}
	case a.Password != "":
		return &githttp.BasicAuth{Username: orGit(a.Username), Password: a.Password}
	default:
		return nil
	}
}

// orGit returns the given user, or "git", the user that most git hosts require.
func orGit(user string) string {
	if user == "" {
		return "git"
	}
	return user
}

// Check returns an error that lists all problems with the credentials and the proxy, including problems with their use
// for the URL. It does not contact the server. The URL is empty for a local repository.
func (r Repository) Check() error {
	problems := append(r.Auth.problems(), r.proxyProblems()...)
	if r.URL != "" {
		address, err := ParseAddress(r.URL)
		if err != nil {
			return err
		}
		problems = append(problems, r.Auth.problemsFor(address, r.Proxy)...)
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// address returns the parsed URL if the credentials may be sent there.
func (r Repository) address() (*url.URL, error) {
	address, err := ParseAddress(r.URL)
	if err != nil {
		return nil, err
	}
	if problems := r.Auth.problemsFor(address, r.Proxy); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "; "))
	}
	return address, nil
}

// problems returns the problems with the credentials that do not depend on the server.
func (a Auth) problems() []string {
	var problems []string
	found := func(bad bool, problem string) {
		if bad {
			problems = append(problems, problem)
		}
	}
	hasKey, hasPassword := len(a.Identity) > 0, a.Password != "" && len(a.Identity) == 0
	found(a.BearerToken != "" && hasPassword, "bearerToken and password are mutually exclusive")
	found(a.GitHubApp.given() && (hasPassword || a.BearerToken != ""),
		"a GitHub App gets its own token; remove bearerToken or password")
	found(a.Username != "" && !hasPassword && !hasKey, "username is set without password")
	found(hasKey && a.KnownHosts == "",
		"identity is set without known_hosts, which lists the trusted servers")
	found(a.KnownHosts != "" && !hasKey, "known_hosts is set without identity, the private key for ssh")
	found(a.Passphrase != "" && !hasKey, "passphrase is set without identity, the private key that it decrypts")
	found(a.Passphrase != "" && hasKey && a.Password != "" && a.Password != a.Passphrase,
		"passphrase and password differ; if identity is set, both are the passphrase of the key")
	found(a.CAOnly && len(a.CABundle) == 0,
		"ca-only is set, but the credentials do not contain ca.crt: no server would be trusted")
	found((a.ProxyUsername == "") != (a.ProxyPassword == ""), "proxyUsername and proxyPassword must be set together")
	problems = append(problems, a.GitHubApp.problems()...)
	return append(problems, a.keyProblems()...)
}

// keyProblems returns the problems with keys and certificates. It never repeats their content.
func (a Auth) keyProblems() []string {
	var problems []string
	if len(a.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(a.CABundle) {
		problems = append(problems, "ca.crt does not contain a PEM certificate")
	}
	switch certificate, key := len(a.ClientCertificate) > 0, len(a.ClientKey) > 0; {
	case certificate && !key:
		problems = append(problems, "tls.crt is set without tls.key")
	case key && !certificate:
		problems = append(problems, "tls.key is set without tls.crt")
	case certificate:
		if _, err := tls.X509KeyPair(a.ClientCertificate, a.ClientKey); err != nil {
			problems = append(problems, "tls.crt and tls.key are not a PEM certificate and its private key")
		}
	}
	if len(a.Identity) > 0 {
		if _, err := a.signer(); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if a.KnownHosts != "" {
		if _, err := readKnownHosts(a.KnownHosts); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// problemsFor returns the reasons why valid credentials cannot be used for the server.
func (a Auth) problemsFor(address *url.URL, proxy string) []string {
	var problems []string
	switch {
	case address.Scheme == "ssh":
		if len(a.Identity) == 0 {
			problems = append(problems, "ssh requires a private key (file identity) and known_hosts, both in the "+
				"directory given by git-credentials")
		}
		if a.BearerToken != "" || a.GitHubApp.given() || len(a.ClientCertificate) > 0 {
			problems = append(problems,
				"bearerToken, tls.crt and GitHub Apps are for https, but the source uses ssh")
		}
		if a.CAOnly {
			problems = append(problems,
				"ca-only is for https, but the source uses ssh, where known_hosts pins the server")
		}
		if named := address.User.Username(); named != "" && a.Username != "" && named != a.Username {
			problems = append(problems, "the user in the URL differs from username")
		}
	case a.GitHubApp.given() && repositoryOf(address) == "":
		problems = append(problems,
			"a GitHub App gets a token for one repository, "+
				"and the URL does not end in a repository name: expected https://HOST/OWNER/NAME.git")
	case a.CAOnly && address.Scheme == "http":
		problems = append(problems, "ca-only is for https, but the source uses http, which has no certificates")
	case len(a.Identity) > 0:
		problems = append(problems, "identity is for ssh, but the source uses "+address.Scheme)
	case address.Scheme == "http" && a.Given() && (proxy != "" || !isLoopback(address.Hostname())):
		problems = append(problems, fmt.Sprintf("credentials for %s would be sent unencrypted; use https",
			address.Host))
	}
	return problems
}

// isLoopback reports whether data sent to host stays on this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// proxyProblems returns the problems with the proxy. It never repeats a URL that may contain a password.
func (r Repository) proxyProblems() []string {
	if r.Proxy == "" {
		return nil
	}
	u, err := url.Parse(r.Proxy)
	switch {
	case err != nil || !isHostAlone(u):
		return []string{"the proxy is not a valid URL; expected http://HOST:PORT, https://HOST:PORT or " +
			"socks5://HOST:PORT"}
	case u.User != nil:
		return []string{fmt.Sprintf(
			"the URL of the proxy %s contains credentials; "+
				"set proxyUsername and proxyPassword in the credentials instead", u.Host)}
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return []string{fmt.Sprintf("proxy scheme %s is not supported; use http, https or socks5", u.Scheme)}
	}
	return nil
}

// isHostAlone reports whether a URL consists only of a scheme and a host.
func isHostAlone(u *url.URL) bool {
	hasPath := u.Path != "" && u.Path != "/"
	return u.Host != "" && u.Opaque == "" && !hasPath && u.RawQuery == "" && u.Fragment == ""
}

// withProxyCredentials adds the proxy credentials to the proxy's URL.
func (a Auth) withProxyCredentials(proxy *url.URL) *url.URL {
	if proxy == nil || a.ProxyUsername == "" {
		return proxy
	}
	with := *proxy
	with.User = url.UserPassword(a.ProxyUsername, a.ProxyPassword)
	return &with
}

// tlsConfig returns a configuration that verifies servers, without a client certificate.
func (a Auth) tlsConfig() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(bytes.TrimSpace(a.CABundle)) == 0 {
		return config
	}
	pool := x509.NewCertPool()
	if system, err := x509.SystemCertPool(); err == nil && !a.CAOnly {
		pool = system
	}
	pool.AppendCertsFromPEM(a.CABundle)
	config.RootCAs = pool
	return config
}
