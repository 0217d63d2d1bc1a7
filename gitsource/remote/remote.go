// Package remote requests references and single commits from a git server. It does not trust responses: sizes are
// limited, and text from a server is never repeated without escaping.
package remote

import (
	"context"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/internal/printable"
)

// Repository specifies the location of a repository and how to access it.
type Repository struct {
	// URL is the URL of a smart HTTP(S) or ssh server; for ssh, also user@host:path.
	URL string
	// Auth holds the credentials for private repositories.
	Auth Auth
	// Proxy is the URL of the proxy, with the scheme http, https or socks5. If it is empty, the environment sets the
	// proxy for HTTP(S).
	Proxy  string
	Limits Limits
	// TempDir is the directory for large packs while they are read. The default is os.TempDir.
	TempDir string
}

// Session is a connection to a server that has sent its references.
type Session struct {
	repository Repository
	upload     transport.UploadPackSession
	advertised *packp.AdvRefs
	close      func()
	// elsewhere returns the server to which the repository's server redirected a request, or "".
	elsewhere func() string
	// secrets returns the credentials that the server or a proxy may repeat.
	secrets func() []string
	// used is set once the connection has served its only request.
	used bool
}

// Open connects and reads the list of references. The caller must close the session.
func Open(ctx context.Context, r Repository) (*Session, error) {
	address, err := r.address()
	if err != nil {
		return nil, err
	}
	s := &Session{repository: r, close: func() {}, elsewhere: func() string { return "" }, secrets: r.Auth.secrets}
	if err := s.open(ctx, address); err != nil {
		s.Close()
		return nil, s.explain(ctx, err)
	}
	if err := checkReferences(s.advertised, s.limits().RefsBytes); err != nil {
		s.Close()
		return nil, s.explain(ctx, err)
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, address *url.URL) (err error) {
	if address.Scheme == "ssh" {
		upload, err := openSSH(ctx, s.repository, address)
		if err != nil {
			return err
		}
		s.upload = upload
	} else {
		client, err := newHTTPClient(s.repository, address)
		if err != nil {
			return explainedError{err}
		}
		s.close, s.elsewhere = client.close, func() string { return client.redirected }
		s.secrets = func() []string { return client.sent }
		if s.upload, err = client.open(ctx, s.repository.Auth); err != nil {
			return err
		}
	}
	s.advertised, err = s.upload.AdvertisedReferencesContext(ctx)
	return err
}

// Close closes the connection.
func (s *Session) Close() {
	if s.upload != nil {
		_ = s.upload.Close()
	}
	s.close()
}

// References returns the references that the server sent.
func (s *Session) References() refs.List {
	list := refs.List{ByName: s.advertised.References}
	if s.advertised.Head == nil {
		return list
	}
	list.Head, list.HeadName = *s.advertised.Head, plumbing.HEAD
	for _, symref := range s.advertised.Capabilities.Get(capability.SymRef) {
		target, ok := strings.CutPrefix(symref, "HEAD:")
		if _, shown := list.ByName[target]; ok && shown && plumbing.ReferenceName(target).Validate() == nil &&
			printable.IsPath(target) {
			list.HeadName = plumbing.ReferenceName(target)
		}
	}
	return list
}
