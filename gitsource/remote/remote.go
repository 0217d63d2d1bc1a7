// Package remote asks a git server for its references, and for single commits. It trusts no answer: sizes are bounded, and nothing that a server writes is
// repeated as it is.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/visible"
)

// Repository is where a repository is, and how to get at it.
type Repository struct {
	// URL of a smart HTTP(S) server.
	URL string
	// Auth is for repositories that are not public.
	Auth   Auth
	Limits Limits
	// TempDir is where large packs are kept while they are read; that for temporary files if it is empty.
	TempDir string
}

// Session is a connection to a server that has shown its references.
type Session struct {
	repository Repository
	upload     transport.UploadPackSession
	advertised *packp.AdvRefs
	close      func()
	// used says that the connection has answered its one request.
	used bool
}

// Open connects, and reads the list of references. Whoever opens a session closes it.
func Open(ctx context.Context, r Repository) (*Session, error) {
	client, err := r.Auth.client()
	if err != nil {
		return nil, err
	}
	client.Transport = boundedTransport{client.Transport, r.Limits.orDefault()}
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, errors.New("the source is not a valid URL")
	}
	upload, err := githttp.NewClient(client).NewUploadPackSession(endpoint, r.Auth.method())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", r.URL, err)
	}
	s := &Session{repository: r, upload: upload, close: client.CloseIdleConnections}
	if s.advertised, err = upload.AdvertisedReferencesContext(ctx); err != nil {
		s.Close()
		return nil, s.explain(ctx, err)
	}
	if err := checkReferences(s.advertised, s.limits().RefsBytes); err != nil {
		s.Close()
		return nil, s.explain(ctx, err)
	}
	return s, nil
}

// Close ends the connection.
func (s *Session) Close() {
	_ = s.upload.Close()
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
		if _, shown := list.ByName[target]; ok && shown && plumbing.ReferenceName(target).Validate() == nil && visible.IsPath(target) {
			list.HeadName = plumbing.ReferenceName(target)
		}
	}
	return list
}

// explain says what a person can do. It repeats nothing that the server wrote.
func (s *Session) explain(ctx context.Context, err error) error {
	at, auth := s.repository.URL, s.repository.Auth
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("fetch %s: %w", at, ctx.Err())
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fmt.Errorf("%s is empty; push a commit to it", at)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		if auth.Given() {
			return fmt.Errorf("%s refused the credentials (%s)", at, auth)
		}
		return fmt.Errorf("%s asks for credentials, and none are given", at)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("%s is not there, or is not shown without credentials", at)
	}
	if exceeded, ok := errors.AsType[limitError](err); ok {
		return fmt.Errorf("fetch %s: %w", at, exceeded)
	}
	_, garbled := errors.AsType[*packp.ErrUnexpectedData](err)
	if garbled || errors.Is(err, pktline.ErrInvalidPktLen) || errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s does not answer as a smart HTTP server of a repository with SHA-1 does; is it the URL to clone from, and did the answer arrive whole?", at)
	}
	// The URL is in the message already; what failed is enough.
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("fetch %s: %w", at, printable(err))
}

// printable keeps what a server wrote from reaching a terminal as it is.
func printable(err error) error {
	const most = 500
	text := err.Error()
	if len(text) <= most && visible.IsPath(text) {
		return err
	}
	return fmt.Errorf("%.*q", most, text)
}
