package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"quorate.dev/quorate/internal/printable"
)

// explainedError is an error that already contains instructions for the user.
type explainedError struct{ error }

// Unwrap returns the underlying error.
func (t explainedError) Unwrap() error { return t.error }

// explain converts an error to an error with instructions for the user. It does not repeat unsafe text from the server,
// which may contain the credentials of the request.
func (s *Session) explain(ctx context.Context, err error) error {
	at := s.repository.URL
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("fetch %s: the server did not respond in time: %w", at, ctx.Err())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("fetch %s: %w", at, ctx.Err())
	}
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok { // it has no Unwrap method
		err = unexpected.Err
	}
	secrets := s.secrets()
	if done, ok := errors.AsType[explainedError](err); ok {
		return fmt.Errorf("fetch %s: %w", at, hide(done.error, secrets...))
	}
	for _, text := range []string{s.explainGit(err), explainHTTP(err), explainReach(err)} {
		if text != "" {
			return fmt.Errorf("%s %s", at, printable.Hide(text, secrets...))
		}
	}
	// The message already contains the URL, so only the cause is needed.
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("fetch %s: %w", at, safeError(err, secrets...))
}

// explainGit explains errors reported by git.
func (s *Session) explainGit(err error) string {
	auth, elsewhere := s.repository.Auth, s.elsewhere()
	refused := errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed)
	absent := errors.Is(err, transport.ErrRepositoryNotFound)
	shown := auth.Given() || len(auth.Identity) > 0
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return "is empty; push a commit to it"
	case (refused || absent) && elsewhere != "" && auth.Given():
		return fmt.Sprintf("redirects to %s, but the credentials are not sent there; "+
			"if they are intended for that server, use that URL", printable.Text(elsewhere))
	case refused && auth.Given():
		return fmt.Sprintf("refused the credentials (%s)", auth)
	case refused:
		return "requires credentials, but none are configured"
	case absent && shown:
		return fmt.Sprintf("does not exist, or these credentials (%s) cannot access it", auth)
	case absent:
		return "does not exist, or requires credentials"
	}
	_, garbled := errors.AsType[*packp.ErrUnexpectedData](err)
	if garbled || errors.Is(err, pktline.ErrInvalidPktLen) || errors.Is(err, packp.ErrEmptyInput) ||
		errors.Is(err, io.ErrUnexpectedEOF) {
		kind := "a smart HTTP server"
		if !strings.HasPrefix(s.repository.URL, "http") {
			kind = "git-upload-pack"
		}
		return "does not respond like " + kind +
			" of a SHA-1 repository; check that this is the clone URL, and that the response was not truncated"
	}
	return ""
}

// explainHTTP explains an HTTP status or a redirect.
func explainHTTP(err error) string {
	if strings.Contains(err.Error(), `http redirect: changes scheme from "https"`) {
		return "redirects from https to http, which is not encrypted; the redirect is not followed"
	}
	answered, ok := errors.AsType[*githttp.Err](err)
	if !ok {
		return ""
	}
	switch status := answered.StatusCode(); {
	case status == http.StatusTooManyRequests:
		return "limits the request rate (status 429); send fewer requests, or use credentials"
	case status == http.StatusProxyAuthRequired:
		return "is behind a proxy that requires credentials (status 407): set proxyUsername and proxyPassword"
	case status >= http.StatusInternalServerError:
		return fmt.Sprintf("returned status %d; the server or a proxy has a problem, which may be temporary",
			status)
	default:
		return fmt.Sprintf("returned status %d; check that this is the clone URL", status)
	}
}

// explainReach explains why a server cannot be reached or is not trusted.
func explainReach(err error) string {
	if text := explainTLS(err); text != "" {
		return text
	}
	return explainNetwork(err)
}

// explainTLS explains why a TLS connection is not trusted.
func explainTLS(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "has a certificate signed by an unknown authority; add the certificate of that authority " +
			"to ca.crt in the credentials"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "has a certificate that is not valid for the host in the URL"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "has a certificate that has expired or is not yet valid; check the local clock"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "does not use TLS; check the port"
	}
	alert, ok := errors.AsType[*net.OpError](err)
	if !ok || alert.Op != "remote error" {
		return ""
	}
	if strings.Contains(alert.Err.Error(), "certificate required") {
		return "requires a client certificate, but none is configured: set tls.crt and tls.key"
	}
	if strings.Contains(alert.Err.Error(), "certificate") {
		return fmt.Sprintf("refused the client certificate (%s)", alert.Err)
	}
	return ""
}

// explainNetwork explains why there is no connection.
func explainNetwork(err error) string {
	op, _ := errors.AsType[*net.OpError](err)
	unresolved, noAddress := errors.AsType[*net.DNSError](err)
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case op != nil && op.Op == "proxyconnect":
		return fmt.Sprintf("is unreachable because the proxy cannot be reached: %s", op.Err)
	case noAddress && unresolved.IsNotFound:
		return "is on a host that has no address; check the host name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is unreachable: connection refused; check host and port"
	case timeout != nil && timeout.Timeout():
		return "did not respond in time"
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return "is unreachable: the server, or a device on the network path, closed the connection"
	}
	return ""
}

// reworded is an error whose text has been replaced.
type reworded struct {
	error
	text string
}

// Error returns the replacement text.
func (r reworded) Error() string { return r.text }

// Unwrap returns the underlying error.
func (r reworded) Unwrap() error { return r.error }

// hide hides secrets in the text of an error.
func hide(err error, secrets ...string) error {
	return reworded{err, printable.Hide(err.Error(), secrets...)}
}

// safeError makes an error with text from a server safe to print. It hides secrets that the text repeats.
func safeError(err error, secrets ...string) error {
	const most = 500
	err = hide(err, secrets...)
	text := err.Error()
	if len(text) <= most && printable.IsPath(text) {
		return err
	}
	return reworded{err, fmt.Sprintf("%.*q", most, text)}
}
