// Package remote asks a git server for its references, and for single commits. It trusts no answer:
// sizes are bounded, and nothing that a server writes is repeated as it is.
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
	"quorate.dev/quorate/visible"
)

// Repository is where a repository is, and how to get at it.
type Repository struct {
	// URL of a smart HTTP(S) server or of an ssh server, or user@host:path for the latter.
	URL string
	// Auth is for repositories that are not public.
	Auth Auth
	// Proxy is the URL of the proxy to go through, of scheme http, https or socks5. Without it the
	// environment names the one for HTTP(S).
	Proxy  string
	Limits Limits
	// TempDir is where large packs are kept while they are read; that for temporary files if it is
	// empty.
	TempDir string
}

// Session is a connection to a server that has shown its references.
type Session struct {
	repository Repository
	upload     transport.UploadPackSession
	advertised *packp.AdvRefs
	close      func()
	// elsewhere is the server that the repository's own redirected to, if it did.
	elsewhere func() string
	// used says that the connection has answered its one request.
	used bool
}

// Open connects, and reads the list of references. Whoever opens a session closes it.
func Open(ctx context.Context, r Repository) (*Session, error) {
	address, err := r.address()
	if err != nil {
		return nil, err
	}
	s := &Session{repository: r, close: func() {}, elsewhere: func() string { return "" }}
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
			return told{err}
		}
		s.close, s.elsewhere = client.close, func() string { return client.redirected }
		if s.upload, err = client.open(ctx, s.repository.Auth); err != nil {
			return err
		}
	}
	s.advertised, err = s.upload.AdvertisedReferencesContext(ctx)
	return err
}

// Close ends the connection.
func (s *Session) Close() {
	if s.upload != nil {
		_ = s.upload.Close()
	}
	s.close()
}

// References returns what the server has shown.
func (s *Session) References() refs.List {
	list := refs.List{ByName: s.advertised.References}
	if s.advertised.Head == nil {
		return list
	}
	list.Head, list.HeadName = *s.advertised.Head, plumbing.HEAD
	for _, symref := range s.advertised.Capabilities.Get(capability.SymRef) {
		target, ok := strings.CutPrefix(symref, "HEAD:")
		if _, shown := list.ByName[target]; ok && shown && plumbing.ReferenceName(target).Validate() == nil &&
			visible.IsPath(target) {
			list.HeadName = plumbing.ReferenceName(target)
		}
	}
	return list
}
